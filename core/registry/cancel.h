// Cancel tokens: numbers of words that plugins poll. The words never move, so that asking is one load (wait-free) and
// raising is one store, which a signal handler may do.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tenon {

/// Any thread. Tokens are never reused; one costs four bytes until the table is gone.
class CancelTable {
public:
    CancelTable() = default;
    ~CancelTable();
    CancelTable(const CancelTable &) = delete;
    CancelTable &operator=(const CancelTable &) = delete;

    /// A new token, not raised; 0 where memory ran out, which is a token that can't be raised.
    uint64_t add() noexcept;
    /// Async-signal-safe; a token that isn't known does nothing.
    void raise(uint64_t token) noexcept { set(token, 1); }
    void clear(uint64_t token) noexcept { set(token, 0); }
    /// Wait-free. False for 0 and for tokens that aren't known.
    bool raised(uint64_t token) const noexcept {
        const Word *word = find(token);
        return word && word->load(std::memory_order_acquire) != 0;
    }

private:
    using Word = std::atomic<uint32_t>;
    static_assert(Word::is_always_lock_free && std::atomic<Word *>::is_always_lock_free, "for signal handlers");
    // Chunk i holds the tokens from 64 (2^i - 1) + 1 on, 64 x 2^i of them.
    static constexpr uint64_t k_first_chunk = 64;
    static constexpr size_t k_chunks = 40;

    Word *find(uint64_t token) const noexcept;
    void set(uint64_t token, uint32_t value) noexcept {
        if (Word *word = find(token)) word->store(value, std::memory_order_release);
    }

    std::array<std::atomic<Word *>, k_chunks> chunks_{};
    std::mutex mutex_;                // of add only
    std::atomic<uint64_t> count_{0};  // tokens given; what lies beyond isn't known
};

}  // namespace tenon
