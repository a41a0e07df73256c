// A model's layers on several devices: which tensors move together, and how many layers go where.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "llm/architecture.h"
#include "tenon/session.h"
#include "tenon/status.h"

namespace tenon::llm {

/// Per value of a decoder graph the group that it moves with, by the first node that uses it: 0 for what is used before
/// the first layer, i + 1 for layer i, `layers` + 1 for what is used behind the last one.
std::vector<uint32_t> layer_groups(const Graph &graph, int64_t layers);

/// Homes for the weights and caches of `graph`, which is `architecture`'s of `key`, a run of one token. `last_layers`: so many
/// layers, and what comes behind them, lie before the session's last device, all of the model if there are no more;
/// none: what there is room for, with graphs for prompts in mind. invalid_argument: a number, but only one device;
/// out_of_memory: no room for that many.
Result<std::vector<TensorHome>> place_model(Session &session, const Architecture &architecture, const GraphKey &key,
                                            const Graph &graph, std::optional<int64_t> last_layers);

}  // namespace tenon::llm
