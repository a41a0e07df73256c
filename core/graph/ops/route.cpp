// route: logits f [t, experts] -> ids i32 [t, k], weights f [t, k]: the k best experts of each token and how much each
// counts. With normalise the weights of the chosen sum to 1.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0);
    const auto &params = call.params.as<tn_params_route>();
    TENON_REQUIRE(is_float(x.type) && x.shape.rank() == 2, "route takes logits f [tokens, experts]");
    TENON_REQUIRE(params.k >= 1 && int64_t(params.k) <= x.shape[1], "route: {} of {} experts", params.k, x.shape[1]);
    TENON_REQUIRE(params.scoring <= TN_ROUTE_SIGMOID && params.normalise <= 1, "route: unknown scoring or flag");
    out[0] = {DType::i32, Shape{x.shape[0], params.k}};
    out[1] = {x.type, Shape{x.shape[0], params.k}};
    return {};
}

ValueId softmax(GraphBuilder &b, ValueId x) {
    tn_params_softmax params{};
    params.struct_size = TN_SIZE_PARAMS_SOFTMAX, params.scale = 1;
    return b.node(TN_OP_SOFTMAX, {x}, ParamBlob::of(params));
}

std::vector<ValueId> decompose(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    const auto &params = call.params.as<tn_params_route>();
    tn_params_top_k top{};
    top.struct_size = TN_SIZE_PARAMS_TOP_K, top.k = params.k;
    const ValueId ids = b.node(TN_OP_TOP_K, {x[0]}, ParamBlob::of(top));
    const bool sigmoid = params.scoring == TN_ROUTE_SIGMOID;
    // A softmax over the chosen equals a softmax over all, normalised: its denominators cancel.
    if (!sigmoid && params.normalise) return {ids, softmax(b, b.node(TN_OP_GATHER_LAST, {x[0], ids}))};
    const ValueId scores = sigmoid ? b.node(TN_OP_SIGMOID, {x[0]}) : softmax(b, x[0]);
    ValueId weights = b.node(TN_OP_GATHER_LAST, {scores, ids});
    if (params.normalise) weights = b.node(TN_OP_DIV, {weights, b.node(TN_OP_SUM, {weights})});
    return {ids, weights};
}

constexpr OpContract k_contracts[] = {{TN_OP_ROUTE, infer, k_function, decompose}};

}  // namespace

std::span<const OpContract> op_contracts_route() {
    return k_contracts;
}

}  // namespace tenon
