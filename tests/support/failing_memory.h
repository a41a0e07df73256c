// The C++ heap of the program that is linked with failing_memory.cpp, made to run out on demand: operator new in all its
// forms, plugins' included, and the program's own calls of realloc (which need the link option -Wl,--wrap=realloc).
#pragma once

#include <cstdint>
#include <utility>

namespace tenon::testing {

/// Allocations of operator new that haven't been freed.
int64_t live_allocations();

/// What runs out when.
enum class Shortage {
    once,   // the nth allocation fails, those behind it succeed
    stays,  // the nth and all behind it fail
};

/// Makes allocations fail, by any thread, during the calls that are made through it, of which there is one at a time.
class FailingMemory {
public:
    /// `nth` counts from 1; 0: none fails.
    FailingMemory(Shortage shortage, uint64_t nth) : shortage_(shortage), nth_(nth) {}
    FailingMemory(const FailingMemory &) = delete;
    FailingMemory &operator=(const FailingMemory &) = delete;

    template <class Call>
    auto operator()(Call &&call) {
        const Armed armed(*this);
        return std::forward<Call>(call)();
    }
    /// Whether an allocation has failed.
    bool struck() const { return failed_ > 0; }

private:
    struct Armed {
        explicit Armed(FailingMemory &memory);
        ~Armed();
        FailingMemory &of;
    };

    const Shortage shortage_;
    const uint64_t nth_;
    uint64_t seen_ = 0, failed_ = 0;
};

}  // namespace tenon::testing
