// The border of a GraphBuilder: what throws inside becomes the builder's kept failure.
#pragma once

#include "base/no_throw.h"
#include "tenon/graph.h"

namespace tenon {

/// Runs `body` and answers what it does, or `otherwise` where it threw.
template <class Answer, class Body>
Answer GraphBuilder::guarded(Answer otherwise, Body &&body) noexcept {
    Status status = no_throw([&] {
        otherwise = body();
        return Status();
    });
    if (!status.ok()) fail(std::move(status));
    return otherwise;
}

}  // namespace tenon
