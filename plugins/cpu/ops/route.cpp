// route: a mixture's choice of experts: ids of the k largest logits, and their scores.
#include <cmath>

#include "kernel.h"

namespace tenon::cpu {
namespace {

constexpr int64_t k_max_experts = 4096;  // a token's scores lie on the stack

std::string refuse(const Problem &p) {
    const auto &params = p.as<tn_params_route>();
    Check check(p);
    check.activation_in(0).out(0, {TN_TYPE_ID_I32}).activation_out(1);
    check.require([&] { return p.in[0].rank == 2 && p.in[0].shape[1] <= k_max_experts; },
                  "logits aren't [t, up to 4096]");
    check.require([&] { return params.k <= p.in[0].shape[1] && params.scoring <= TN_ROUTE_SIGMOID; },
                  "k is more than there are experts, or an unknown scoring");
    return check
        .require(
            [&] {
                return p.out[0].contiguous() && p.out[0].rank == 2 && p.out[0].same_shape(p.out[1]) &&
                       p.out[0].shape[0] == p.in[0].shape[0] && p.out[0].shape[1] == int64_t(params.k);
            },
            "the outputs aren't [t, k]")
        .reason();
}

// scores[i] of all experts; softmax over all of them, or each sigmoid.
void score(const float *logits, int64_t n, uint32_t scoring, float *scores) {
    if (scoring == TN_ROUTE_SIGMOID) {
        for (int64_t i = 0; i < n; ++i) scores[i] = 1.0f / (1.0f + std::exp(-logits[i]));
        return;
    }
    float most = n > 0 ? logits[0] : 0.0f;
    for (int64_t i = 1; i < n; ++i) most = std::fmax(most, logits[i]);
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += scores[i] = std::exp(logits[i] - most);
    for (int64_t i = 0; i < n; ++i) scores[i] /= sum;
}

void route(const float *logits, int64_t n, const tn_params_route &params, int32_t *ids, float *weights) {
    float scores[k_max_experts];
    bool taken[k_max_experts] = {};
    score(logits, n, params.scoring, scores);
    float sum = 0;
    for (uint32_t j = 0; j < params.k; ++j) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; ++i) {
            if (!taken[i] && (best < 0 || logits[i] > logits[best])) best = i;
        }
        taken[best] = true;
        ids[j] = int32_t(best);
        sum += weights[j] = scores[best];
    }
    if (params.normalise == 0) return;
    for (uint32_t j = 0; j < params.k; ++j) weights[j] /= sum;
}

std::unique_ptr<Kernel> make(const Problem &p, Features) {
    return make_kernel(Cut::of(p.in[0].shape[0], (4 + int64_t(p.as<tn_params_route>().k)) * p.in[0].shape[1]),
                       [x = p.in[0], params = p.as<tn_params_route>()](const Args &args, int64_t first, int64_t last) {
                           for (int64_t t = first; t < last; ++t) {
                               route(args.input<float>(0, x.row_offset(t)), x.shape[1], params,
                                     args.output<int32_t>(0) + t * params.k, args.output<float>(1) + t * params.k);
                           }
                       });
}

constexpr Op k_ops[] = {{TN_OP_ROUTE, refuse, make}};

}  // namespace

std::span<const Op> ops_route() {
    return k_ops;
}

}  // namespace tenon::cpu
