#include "cmd/support/interrupt.h"

#include <atomic>
#include <utility>

namespace tenon::cmd {
namespace {

// A handler gets no argument of ours: what it needs can only be found here.
std::atomic<Registry *> g_listener{nullptr};
std::atomic<uint64_t> g_token{0};
std::atomic<bool> g_raised{false};
static_assert(std::atomic<Registry *>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

void on_signal(int) {
    g_raised.store(true);
    if (Registry *registry = g_listener.load()) registry->raise_cancel(g_token.load());
}

}  // namespace

Interrupt::Interrupt(std::shared_ptr<Registry> registry)
    : registry_(std::move(registry)), token_(registry_->new_cancel_token()) {
    g_raised.store(false);
    g_token.store(token_);
    g_listener.store(registry_.get());
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    // A shell starts background jobs with interrupts ignored: that stays so.
    for (auto [signal, old] : {std::pair{SIGINT, &old_int_}, std::pair{SIGTERM, &old_term_}}) {
        sigaction(signal, nullptr, old);
        if (old->sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
    }
}

Interrupt::~Interrupt() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
    g_listener.store(nullptr);
    registry_->clear_cancel(token_);
}

bool Interrupt::raised() {
    return g_raised.load();
}

}  // namespace tenon::cmd
