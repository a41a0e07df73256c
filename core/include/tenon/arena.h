// Where graphs lie: memory that only grows and goes all at once, so that a million nodes cost no million allocations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon {

/// Text that ends in a 0 and lies in memory of whoever it was read from; valid as long as that is there. Code that
/// wants a string of its own gets a copy.
class Name : public std::string_view {
public:
    constexpr Name() : std::string_view("", 0) {}
    const char *c_str() const { return data(); }
    operator std::string() const { return std::string(data(), size()); }

private:
    friend class Arena;
    Name(const char *text, size_t bytes) : std::string_view(text, bytes) {}  // text[bytes] is 0
};

/// Memory from chunks that grow up to 1 MiB. Addresses stay until the arena goes, also when it is moved. Throws
/// std::bad_alloc, and then stays as it was. One thread.
class Arena {
public:
    Arena() = default;
    Arena(Arena &&other) noexcept
        : chunks_(std::move(other.chunks_)),
          next_(std::exchange(other.next_, nullptr)),
          left_(std::exchange(other.left_, 0)) {}
    Arena &operator=(Arena &&other) noexcept {
        chunks_ = std::exchange(other.chunks_, {});
        next_ = std::exchange(other.next_, nullptr);
        left_ = std::exchange(other.left_, 0);
        return *this;
    }

    /// Uninitialised; `alignment` is a power of two up to that of operator new.
    void *take(size_t bytes, size_t alignment) {
        const size_t skip = -reinterpret_cast<uintptr_t>(next_) & (alignment - 1);
        if (skip > left_ || bytes > left_ - skip) [[unlikely]]
            return take_from_new(bytes);
        std::byte *place = next_ + skip;
        next_ = place + bytes;
        left_ -= skip + bytes;
        return place;
    }
    template <class T>
    std::span<T> take_array(size_t count) {
        static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
        if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
        return {static_cast<T *>(take(count * sizeof(T), alignof(T))), count};
    }
    template <class T>
    std::span<T> copy(std::span<const T> from) {
        const std::span<T> to = take_array<T>(from.size());
        if (!from.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
        return to;
    }
    /// The pieces one behind the other.
    Name join(std::initializer_list<std::string_view> pieces) {
        size_t bytes = 0;
        for (std::string_view piece : pieces) bytes += piece.size();
        char *text = static_cast<char *>(take(bytes + 1, 1)), *end = text;
        for (std::string_view piece : pieces) end += piece.copy(end, piece.size());
        *end = 0;
        return Name(text, bytes);
    }

private:
    void *take_from_new(size_t bytes);

    std::vector<std::unique_ptr<std::byte[]>> chunks_;
    std::byte *next_ = nullptr;  // in the last chunk
    size_t left_ = 0;
};

/// Blocks from here on lie in huge pages where the system has them: else each 4 KiB cost a page fault, which for the
/// arrays of a graph of a million nodes is more than the work on them.
inline constexpr size_t k_large_block = size_t(4) << 20, k_huge_page = size_t(2) << 20;
void advise_huge_pages(void *block, size_t bytes) noexcept;

/// A vector whose large blocks lie in huge pages.
template <class T>
struct LargeBlocks {
    using value_type = T;
    LargeBlocks() = default;
    template <class Other>
    LargeBlocks(const LargeBlocks<Other> &) noexcept {}
    bool operator==(const LargeBlocks &) const = default;

    T *allocate(size_t count) {
        if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
        const size_t bytes = count * sizeof(T);
        if (bytes < k_large_block) return static_cast<T *>(::operator new(bytes));
        void *block = ::operator new(bytes, std::align_val_t(k_huge_page));
        advise_huge_pages(block, bytes);
        return static_cast<T *>(block);
    }
    void deallocate(T *block, size_t count) noexcept {
        if (count * sizeof(T) < k_large_block)
            ::operator delete(block);
        else
            ::operator delete(block, std::align_val_t(k_huge_page));
    }
};
template <class T>
using LargeVector = std::vector<T, LargeBlocks<T>>;

/// A vector of plain values that grows by realloc: a large one is moved by its pages, without copies. Throws
/// std::bad_alloc, and then stays as it was. One thread while it grows.
template <class T>
class FlatArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= alignof(std::max_align_t));

public:
    FlatArray() = default;
    FlatArray(FlatArray &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    FlatArray &operator=(FlatArray &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~FlatArray() { std::free(data_); }

    T &push_back(const T &value) {
        if (size_ == capacity_) [[unlikely]] {
            const T kept = value;  // it may lie in this array
            set_capacity(capacity_ ? capacity_ * 2 : std::max<size_t>(1, 512 / sizeof(T)));
            return data_[size_++] = kept;
        }
        return data_[size_++] = value;
    }
    void append(std::span<const T> values) {
        reserve(size_ + values.size());
        if (!values.empty()) std::memcpy(static_cast<void *>(data_ + size_), values.data(), values.size_bytes());
        size_ += values.size();
    }
    /// At least doubles where it grows, so that many small appends stay linear.
    void reserve(size_t count) {
        if (count > capacity_) set_capacity(std::max(count, capacity_ * 2));
    }
    /// Keeps the memory.
    void clear() { size_ = 0; }
    /// Gives back what growing took ahead, where the allocator can.
    void trim() {
        if (size_ == 0 || size_ == capacity_) return;
        if (void *smaller = std::realloc(data_, size_ * sizeof(T)))
            data_ = static_cast<T *>(smaller), capacity_ = size_;
    }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T *data() { return data_; }
    const T *data() const { return data_; }
    T *begin() { return data_; }
    T *end() { return data_ + size_; }
    const T *begin() const { return data_; }
    const T *end() const { return data_ + size_; }
    T &operator[](size_t i) { return data_[i]; }
    const T &operator[](size_t i) const { return data_[i]; }

private:
    void set_capacity(size_t count) {
        if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
        void *grown = std::realloc(static_cast<void *>(data_), count * sizeof(T));
        if (!grown) throw std::bad_alloc();
        data_ = static_cast<T *>(grown), capacity_ = count;
        if (count * sizeof(T) >= k_large_block) advise_huge_pages(grown, count * sizeof(T));
    }

    T *data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

}  // namespace tenon
