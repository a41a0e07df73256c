/* The plans of good.c, which includes this in its middle: every node is `out = a + b`. */
static void plan_destroy(tn_plan p) {
    atomic_fetch_sub(&p->device->instance->live, 1);
    free(p->steps);
    free(p->bytes);
    free(p->places);
    free(p->bases);
    free(p);
}
static tn_status plan_prepare(tn_device d, const tn_graph *g, tn_plan *out) {
    tn_plan p = calloc(1, sizeof *p);
    if (!p) return fail(d->instance, TN_OUT_OF_MEMORY, "no memory for a plan");
    p->device = d;
    p->values = g->value_count;
    p->nodes = g->node_count;
    p->steps = calloc(p->nodes + 1, sizeof *p->steps);
    p->bytes = calloc(p->values + 1, sizeof *p->bytes);
    atomic_fetch_add(&d->instance->live, 1);
    for (uint64_t i = 0; i < p->values; ++i) p->bytes[i] = bytes_of(value_at(g, i));
    for (uint64_t i = 0; i < p->nodes; ++i) {
        const tn_node *n = node_at(g, i);
        if (n->op != TN_OP_ADD) {
            plan_destroy(p);
            return fail(d->instance, TN_UNSUPPORTED, "a node isn't add");
        }
        p->steps[i][0] = n->outputs[0];
        p->steps[i][1] = n->inputs[0];
        p->steps[i][2] = n->inputs[1];
    }
    *out = p;
    return TN_OK;
}
static int answers(tn_plan p, const char *what) {
    return !strcmp(p->device->answers, what);
}

static tn_status plan_groups(tn_plan p, uint64_t *io, uint64_t stride, tn_group *out) {
    uint64_t room = *io, count = answers(p, "fused") ? 1 : p->nodes;
    if (answers(p, "none") || answers(p, "half")) return TN_UNIMPLEMENTED;
    if (answers(p, "huge")) count = UINT64_MAX / 2;
    *io = count;
    if (!out) return TN_OK;
    if (room < count) return TN_TOO_SMALL;
    for (uint64_t i = 0; i < count; ++i) ((tn_group *)((char *)out + i * stride))->scratch_bytes = 64 * (i + 1);
    return TN_OK;
}
static tn_status plan_node_groups(tn_plan p, uint64_t *io, uint32_t *out) {
    uint64_t room = *io, count = answers(p, "few") ? p->nodes - 1 : p->nodes;
    if (answers(p, "none")) return TN_UNIMPLEMENTED;
    *io = count;
    if (!out) return TN_OK;
    if (room < count) return TN_TOO_SMALL;
    for (uint64_t i = 0; i < count; ++i) {
        out[i] = (uint32_t)(answers(p, "fused") ? 0 : answers(p, "backwards") ? p->nodes - 1 - i : i);
        if (answers(p, "outside")) out[i] = (uint32_t)p->nodes;
    }
    return TN_OK;
}
static tn_status plan_unstored(tn_plan p, uint64_t *io, uint32_t *out) {
    uint64_t room = *io, count = answers(p, "unstored") || answers(p, "fused");
    *io = count;
    if (!out) return TN_OK;
    if (room < count) return TN_TOO_SMALL;
    /* "fused": what lies between the two nodes, which is right; "unstored": the observed result */
    if (count) out[0] = p->steps[answers(p, "fused") ? 0 : p->nodes - 1][0];
    return TN_OK;
}
static tn_status plan_in_place(tn_plan p, uint64_t *io, uint64_t stride, tn_in_place *out) {
    uint64_t room = *io, count = answers(p, "offers") ? 1 : answers(p, "twice") ? 2 : 0;
    *io = count;
    if (!out) return TN_OK;
    if (room < count) return TN_TOO_SMALL;
    for (uint64_t i = 0; i < count; ++i) {
        tn_in_place *pair = (tn_in_place *)((char *)out + i * stride);
        pair->output = p->steps[0][0];
        pair->input = p->steps[0][1 + i];
    }
    return TN_OK;
}
static tn_status plan_place(tn_plan p, const tn_placement *placement) {
    if (p->places) return fail(p->device->instance, TN_INVALID_STATE, "placed already");
    p->places = calloc(p->values + 1, sizeof *p->places);
    p->bindings = placement->binding_count;
    p->bases = calloc(p->bindings + 1, sizeof *p->bases);
    for (uint64_t i = 0; i < p->values; ++i)
        p->places[i] = *(const tn_place *)((const char *)placement->values + i * placement->value_stride);
    return TN_OK;
}
static tn_status plan_bind(tn_plan p, const tn_bind *bind) {
    if (!p->places) return fail(p->device->instance, TN_INVALID_STATE, "not placed");
    for (uint64_t i = 0; i < p->bindings; ++i)
        p->bases[i] = ((const tn_binding *)((const char *)bind->bindings + i * bind->binding_stride))->base;
    return TN_OK;
}
static tn_status plan_run(tn_plan p, tn_stream s, const tn_run *run) {
    const tn_host *host = &p->device->instance->host;
    if (!p->places || !p->bases[0]) return fail(p->device->instance, TN_INVALID_STATE, "not bound");
    if (p->device->lost) return fail(p->device->instance, TN_DEVICE_LOST, "the device fell off the bus");
    for (uint64_t i = 0; i < p->nodes && !s->poison; ++i) {
        float *at[3];
        uint32_t stop = 0;
        host->cancelled(host->ctx, run->cancel_token, &stop);
        if (stop) s->poison = TN_CANCELLED;
        if (stop) break;
        for (int k = 0; k < 3; ++k) {
            const tn_place *place = &p->places[p->steps[i][k]];
            at[k] = (float *)(void *)(p->bases[place->binding] + place->offset);
        }
        for (uint64_t e = 0; e < p->bytes[p->steps[i][0]] / 4; ++e) at[0][e] = at[1][e] + at[2][e];
    }
    return TN_OK;
}
