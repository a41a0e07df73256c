// The executables that a session keeps for `prepare` to find again: the last used ones.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tenon/session.h"

namespace tenon {

/// What an executable was made for, a session's devices and pins apart. Pins are found by names, and so are tensors.
struct ExecutableKey {
    GraphHash graph, names;
    uint64_t tensors = 0;
    std::vector<NodeId> observed;
    bool operator==(const ExecutableKey &) const = default;
};

/// One thread at a time.
class ExecutableCache {
public:
    explicit ExecutableCache(size_t capacity) : capacity_(capacity) {}

    /// Null where there is none. What is found counts as used last. Allocates nothing.
    std::shared_ptr<Executable> find(const ExecutableKey &key) {
        const auto found = index_.find(key);
        if (found == index_.end()) return nullptr;
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
    }
    void put(const ExecutableKey &key, std::shared_ptr<Executable> executable) {
        erase(key);
        if (capacity_ == 0) return;
        while (order_.size() >= capacity_) {
            index_.erase(order_.back().first);
            order_.pop_back();
        }
        order_.emplace_front(key, std::move(executable));
        index_[key] = order_.begin();
    }
    void erase(const ExecutableKey &key) {
        const auto found = index_.find(key);
        if (found == index_.end()) return;
        order_.erase(found->second);
        index_.erase(found);
    }
    /// Forgets those that nobody else holds. True if there were any.
    bool drop_unused() {
        const size_t before = order_.size();
        for (auto at = order_.begin(); at != order_.end();) {
            const auto here = at++;
            if (here->second.use_count() > 1) continue;
            index_.erase(here->first);
            order_.erase(here);
        }
        return order_.size() < before;
    }

private:
    struct Hash {
        size_t operator()(const ExecutableKey &key) const {
            // The graph's hash is one already; the rest only has to tell neighbours apart.
            return size_t(key.graph.low ^ (key.names.low * 3) ^ (key.tensors * 0x9e3779b97f4a7c15u) ^
                          key.observed.size());
        }
    };
    using Order = std::list<std::pair<ExecutableKey, std::shared_ptr<Executable>>>;
    size_t capacity_;
    Order order_;  // the last used first
    std::unordered_map<ExecutableKey, Order::iterator, Hash> index_;
};

}  // namespace tenon
