#include "failing_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

extern "C" void *__real_realloc(void *at, size_t bytes);

namespace tenon::testing {

namespace {

std::atomic<int64_t> g_live;
// Of the FailingMemory that is armed; not in it, since other threads may look after it is gone.
std::atomic<bool> g_armed, g_stays;
std::atomic<uint64_t> g_nth, g_seen, g_failed;

bool fails() {
    if (!g_armed) return false;
    const uint64_t number = ++g_seen;
    if (g_nth == 0 || (g_stays ? number < g_nth : number != g_nth)) return false;
    ++g_failed;
    return true;
}

void *allocate(size_t bytes, size_t alignment) noexcept {
    if (fails()) return nullptr;
    if (bytes == 0) bytes = 1;
    void *at = alignment <= alignof(std::max_align_t)
                   ? std::malloc(bytes)
                   : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (at) g_live.fetch_add(1, std::memory_order_relaxed);
    return at;
}

void *allocate_or_throw(size_t bytes, size_t alignment) {
    void *at = allocate(bytes, alignment);
    if (!at) throw std::bad_alloc();
    return at;
}

void release(void *at) noexcept {
    if (at) g_live.fetch_sub(1, std::memory_order_relaxed);
    std::free(at);
}

constexpr size_t k_default = alignof(std::max_align_t);

}  // namespace

int64_t live_allocations() {
    return g_live;
}

FailingMemory::Armed::Armed(FailingMemory &memory) : of(memory) {
    g_stays = of.shortage_ == Shortage::stays;
    g_nth = of.nth_;
    g_seen = of.seen_;
    g_failed = of.failed_;
    g_armed = true;
}
FailingMemory::Armed::~Armed() {
    g_armed = false;
    of.seen_ = g_seen;
    of.failed_ = g_failed;
}

}  // namespace tenon::testing

using namespace tenon::testing;

// The linker leads the program's own calls of realloc here.
extern "C" void *__wrap_realloc(void *at, size_t bytes) {
    return fails() ? nullptr : __real_realloc(at, bytes);
}

void *operator new(size_t bytes) {
    return allocate_or_throw(bytes, k_default);
}
void *operator new[](size_t bytes) {
    return allocate_or_throw(bytes, k_default);
}
void *operator new(size_t bytes, std::align_val_t alignment) {
    return allocate_or_throw(bytes, size_t(alignment));
}
void *operator new[](size_t bytes, std::align_val_t alignment) {
    return allocate_or_throw(bytes, size_t(alignment));
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
    return allocate(bytes, k_default);
}
void *operator new[](size_t bytes, const std::nothrow_t &) noexcept {
    return allocate(bytes, k_default);
}
void *operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
    return allocate(bytes, size_t(alignment));
}
void *operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
    return allocate(bytes, size_t(alignment));
}
void operator delete(void *at) noexcept {
    release(at);
}
void operator delete[](void *at) noexcept {
    release(at);
}
void operator delete(void *at, size_t) noexcept {
    release(at);
}
void operator delete[](void *at, size_t) noexcept {
    release(at);
}
void operator delete(void *at, std::align_val_t) noexcept {
    release(at);
}
void operator delete[](void *at, std::align_val_t) noexcept {
    release(at);
}
void operator delete(void *at, size_t, std::align_val_t) noexcept {
    release(at);
}
void operator delete[](void *at, size_t, std::align_val_t) noexcept {
    release(at);
}
