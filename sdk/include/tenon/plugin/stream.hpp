// The ready-made stream: one thread works off a ring of queued items. Queuing copies an item into the ring, allocates
// nothing, and wakes the thread only when it sleeps: after a short spin. Poison as D27 to D30 say.
#ifndef TENON_PLUGIN_STREAM_HPP
#define TENON_PLUGIN_STREAM_HPP

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tenon/plugin/event.hpp"

namespace tenon::plugin {

/// Calls are [object], so the ring has one producer and one consumer.
class ThreadStream final : public Stream {
public:
    explicit ThreadStream(Device &device);
    ~ThreadStream() override;  // finishes what is queued (D30)

    void set(Buffer &buffer, const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) override;
    void get(Buffer &buffer, const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) override;
    void copy(Buffer &dst, const ValueView &dst_tensor, Buffer &src, const ValueView &src_tensor) override;
    void run(Plan &plan, const BoundSet &set, uint64_t cancel_token) override;
    void synchronize(uint64_t timeout_ns) override;
    /// For the event: its round ends, or is waited for, when the stream gets there.
    void queue_record(RoundEvent &event, uint64_t round);
    void queue_wait(RoundEvent &event, uint64_t round);

private:
    enum class Kind : uint8_t { kSet, kGet, kCopy, kRun, kRecord, kWait };
    /// One slot of the ring; only the fields of its kind are written.
    struct Work {
        Kind kind = Kind::kRun;
        Plan *plan = nullptr;
        const BoundSet *bound = nullptr;
        RoundEvent *event = nullptr;
        uint64_t number = 0;  // cancel token, or round
        Buffer *buffer = nullptr;
        const Buffer *from = nullptr;
        ValueView tensor, from_tensor;
        uint64_t offset = 0, bytes = 0;
        const void *src = nullptr;
        void *dst = nullptr;
    };

    Work &begin();   // waits for room
    void publish();  // what begin gave
    void work() noexcept;
    bool next() noexcept;  // waits for an item; false: stop
    void perform(Work &work) noexcept;
    void do_work(Work &work);
    bool wait_done(uint64_t goal, uint64_t timeout_ns, bool even_if_lost);
    void wake() noexcept override;
    void poison(const detail::Failure &why) noexcept;

    const uint64_t spin_ns_;
    const uint64_t mask_;
    std::vector<Work> ring_;
    alignas(64) std::atomic<uint64_t> queued_{0};  // items ever published
    alignas(64) std::atomic<uint64_t> done_{0};    // items ever finished
    alignas(64) std::atomic<bool> asleep_{false};  // the thread is at work_cond_
    std::atomic<uint32_t> waiting_{0};             // callers at done_cond_
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable work_cond_, done_cond_;
    std::mutex poison_mutex_;
    std::atomic<bool> poisoned_{false};
    detail::Failure poison_;
    std::thread thread_;
};

inline ThreadStream::ThreadStream(Device &device)
    : Stream(device),
      spin_ns_(std::thread::hardware_concurrency() > 1 ? device.stream_options().spin_ns : 0),
      mask_(std::max<uint64_t>(device.stream_options().capacity, 2) - 1),
      ring_(mask_ + 1) {
    if ((ring_.size() & mask_) != 0) fail(TN_INTERNAL, "a stream's capacity isn't a power of two");
    // The thread inherits the caller's signal mask: it blocks all, so that the host's handlers run on the host's
    // threads.
    thread_ = std::thread([this] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        work();
    });
    try {
        enlist();
    } catch (...) {
        stop_.store(true);
        wake();
        thread_.join();
        throw;
    }
}

inline ThreadStream::~ThreadStream() {
    forget();
    stop_.store(true);
    wake();
    thread_.join();
}

inline void ThreadStream::wake() noexcept {
    const std::lock_guard lock(mutex_);
    work_cond_.notify_all();
    done_cond_.notify_all();
}

// ---- The producer ----

inline ThreadStream::Work &ThreadStream::begin() {
    const uint64_t at = queued_.load(std::memory_order_relaxed);
    if (at - done_.load(std::memory_order_acquire) > mask_) wait_done(at - mask_, TN_FOREVER, true);
    return ring_[at & mask_];
}

inline void ThreadStream::publish() {
    // Both sides store first and then look at the other's word, sequentially consistent: one of them sees the other.
    queued_.store(queued_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    const std::lock_guard lock(mutex_);
    work_cond_.notify_one();
}

/// True once goal items are finished; false when the time is over, and as soon as the device is lost (D29) unless
/// even_if_lost: room in the ring must be waited for, which is short, since the thread skips what is queued then.
inline bool ThreadStream::wait_done(uint64_t goal, uint64_t timeout_ns, bool even_if_lost) {
    auto reached = [&] { return done_.load(std::memory_order_seq_cst) >= goal; };
    if (reached() || timeout_ns == 0) return reached();
    const detail::Deadline deadline(timeout_ns);
    if (detail::spin(std::min(spin_ns_, timeout_ns), reached)) return true;
    std::unique_lock lock(mutex_);
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    auto over = [&] { return reached() || (!even_if_lost && device().lost()); };
    deadline.wait(done_cond_, lock, over);
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    return reached();
}

inline void ThreadStream::set(Buffer &buffer, const ValueView &tensor, uint64_t offset, const void *src,
                              uint64_t bytes) {
    Work &w = begin();
    w.kind = Kind::kSet, w.buffer = &buffer, w.tensor = tensor, w.offset = offset, w.src = src, w.bytes = bytes;
    w.tensor.name = {};
    publish();
}

inline void ThreadStream::get(Buffer &buffer, const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) {
    Work &w = begin();
    w.kind = Kind::kGet, w.buffer = &buffer, w.tensor = tensor, w.offset = offset, w.dst = dst, w.bytes = bytes;
    w.tensor.name = {};
    publish();
}

inline void ThreadStream::copy(Buffer &dst, const ValueView &dst_tensor, Buffer &src, const ValueView &src_tensor) {
    Work &w = begin();
    w.kind = Kind::kCopy, w.buffer = &dst, w.tensor = dst_tensor, w.from = &src, w.from_tensor = src_tensor;
    w.tensor.name = w.from_tensor.name = {};
    publish();
}

inline void ThreadStream::run(Plan &plan, const BoundSet &set, uint64_t cancel_token) {
    Work &w = begin();
    w.kind = Kind::kRun, w.plan = &plan, w.bound = &set, w.number = cancel_token;
    publish();
}

inline void ThreadStream::queue_record(RoundEvent &event, uint64_t round) {
    Work &w = begin();
    w.kind = Kind::kRecord, w.event = &event, w.number = round;
    publish();
}

inline void ThreadStream::queue_wait(RoundEvent &event, uint64_t round) {
    Work &w = begin();
    w.kind = Kind::kWait, w.event = &event, w.number = round;
    publish();
}

inline void ThreadStream::synchronize(uint64_t timeout_ns) {
    const bool reached = wait_done(queued_.load(std::memory_order_relaxed), timeout_ns, false);
    device().check_alive();
    if (!reached) throw Error(TN_TIMEOUT, "the stream isn't done yet");
    if (!poisoned_.load(std::memory_order_acquire)) return;
    detail::Failure why;
    {
        const std::lock_guard lock(poison_mutex_);
        why = poison_;
        poison_ = {};
        poisoned_.store(false, std::memory_order_release);
    }
    throw Error(why.status, why.text);
}

// ---- The thread ----

inline bool ThreadStream::next() noexcept {
    const uint64_t at = done_.load(std::memory_order_relaxed);
    auto ready = [&] { return queued_.load(std::memory_order_seq_cst) != at || stop_.load(std::memory_order_relaxed); };
    if (!detail::spin(spin_ns_, ready)) {
        std::unique_lock lock(mutex_);
        asleep_.store(true, std::memory_order_seq_cst);
        work_cond_.wait(lock, ready);
        asleep_.store(false, std::memory_order_relaxed);
    }
    return queued_.load(std::memory_order_acquire) != at;
}

inline void ThreadStream::work() noexcept {
    while (next()) {
        const uint64_t at = done_.load(std::memory_order_relaxed);
        perform(ring_[at & mask_]);
        done_.store(at + 1, std::memory_order_seq_cst);
        if (waiting_.load(std::memory_order_seq_cst) == 0) continue;
        const std::lock_guard lock(mutex_);
        done_cond_.notify_all();
    }
}

inline void ThreadStream::poison(const detail::Failure &why) noexcept {
    const std::lock_guard lock(poison_mutex_);
    if (poisoned_.load(std::memory_order_relaxed)) return;
    poison_ = why;
    poisoned_.store(true, std::memory_order_release);
}

inline void ThreadStream::perform(Work &work) noexcept {
    detail::Failure failure;
    if (device().lost()) detail::attempt(failure, [&] { device().check_alive(); });
    const bool skip = failure.status != TN_OK || poisoned_.load(std::memory_order_acquire);
    if (work.kind == Kind::kRecord) {
        if (skip && failure.status == TN_OK) {
            const std::lock_guard lock(poison_mutex_);
            failure = poison_;
        }
        work.event->end_round(work.number, failure);
        return;
    }
    if (skip) {
        if (work.kind == Kind::kWait) work.event->leave(work.number);
    } else {
        detail::attempt(failure, [&] { do_work(work); });
    }
    if (failure.status == TN_DEVICE_LOST) device().lose(failure.text);
    if (failure.status != TN_OK) poison(failure);
}

inline void ThreadStream::do_work(Work &work) {
    switch (work.kind) {
        case Kind::kRun: return work.plan->execute(RunView(*work.plan, *work.bound, work.number, device()));
        case Kind::kSet: return work.buffer->set(work.tensor, work.offset, work.src, work.bytes);
        case Kind::kGet: return work.buffer->get(work.tensor, work.offset, work.dst, work.bytes);
        case Kind::kCopy: return work.buffer->copy_from(work.tensor, *work.from, work.from_tensor);
        case Kind::kWait: return work.event->await(work.number, TN_FOREVER);
        case Kind::kRecord: return;
    }
}

// ---- Events on it ----

inline void RoundEvent::record(Stream &stream) {
    auto &on = dynamic_cast<ThreadStream &>(stream);
    on.queue_record(*this, begin_round());
}

inline void RoundEvent::wait(Stream &stream) {
    auto &on = dynamic_cast<ThreadStream &>(stream);
    on.queue_wait(*this, enter());
}

inline std::unique_ptr<Stream> Device::make_stream() {
    return std::make_unique<ThreadStream>(*this);
}
inline std::unique_ptr<Event> Device::make_event() {
    return std::make_unique<RoundEvent>(*this);
}

}  // namespace tenon::plugin
#endif
