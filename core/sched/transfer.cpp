#include "sched/transfer.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

Status Routes::probe(const DeviceSet &devices, uint32_t from, uint32_t to, Stream &stream, const Logger &log) {
    Route &route = known_[size_t(from) * devices_ + to];
    if (route != Route::unknown) return {};
    route = Route::staged;
    // H02: only a plugin's own memory can be named to it.
    if (devices.list[from]->plugin() != devices.list[to]->plugin()) return {};
    constexpr int64_t k_bytes = 1024;
    std::vector<std::byte> sent(k_bytes), got(k_bytes);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = std::byte((i * 37 + 11) & 0xff);
    const tn_value value = describe(DType::f32, {k_bytes / 4}, "probe");
    TENON_ASSIGN(const auto source, devices.types[from].alloc(k_bytes, Usage::compute));
    TENON_ASSIGN(const auto target, devices.types[to].alloc(k_bytes, Usage::compute));
    tn_value in_source = value, in_target = value;
    TENON_ASSIGN(in_source.cookie, source->init_tensor(value));
    TENON_ASSIGN(in_target.cookie, target->init_tensor(value));
    TENON_TRY(source->set(in_source, 0, sent.data(), k_bytes));
    TENON_TRY(target->set(in_target, 0, got.data(), k_bytes));
    Status status = stream.copy(*target, in_target, *source, in_source);
    if (status.code() == Code::unsupported || status.code() == Code::unimplemented) return {};
    if (status.ok()) status = stream.synchronize();
    if (status.ok()) status = target->get(in_target, 0, got.data(), k_bytes);
    if (status.ok() && sent == got) {
        route = Route::direct;
        return {};
    }
    if (status.code() == Code::device_lost) return status;
    log.log(LogLevel::warning, "{} and {}: {} copies directly, but {}; values go by way of the host",
            devices.list[from]->name(), devices.list[to]->name(), devices.list[to]->name(),
            status.ok() ? "wrong bytes arrived" : status.message());
    return {};
}

Status Staging::reserve(const std::shared_ptr<Device> &device, uint64_t bytes) {
    const uint64_t room = std::min(bytes, k_piece_bytes);
    for (Piece &piece : pieces_) {
        if (!piece.passed) {
            TENON_ASSIGN(piece.passed, Event::create(device));
        }
        if (piece.memory.size() < room) piece.memory.resize(room);
    }
    return {};
}

Status Staging::carry(Stream &stream, const Located &source, const Located &target, const Stored &what,
                      uint64_t bytes) {
    // Whole rows where they fit, since packed layouts know rows; else whole blocks.
    const DTypeInfo &type = dtype_info(what.type);
    const uint64_t row = uint64_t(what.shape.back()) / type.block_elements * type.block_bytes;
    const uint64_t room = pieces_[0].memory.size(), unit = row && row <= room ? row : type.block_bytes;
    const uint64_t step = room / unit * unit;
    for (uint64_t done = 0; done < bytes;) {
        Piece &piece = pieces_[next_];
        next_ = (next_ + 1) % pieces_.size();
        const uint64_t count = std::min(step, bytes - done);
        // Ended is all that counts here: a failure is the stream's to tell, and one of an earlier run has been told.
        (void)piece.passed->synchronize();
        TENON_TRY(source.buffer->get(source.value, done, piece.memory.data(), count));
        TENON_TRY(stream.set(*target.buffer, target.value, done, piece.memory.data(), count));
        TENON_TRY(piece.passed->record(stream));
        done += count;
    }
    return {};
}

Status carry(const BoundGraph &graph, uint32_t copy, uint32_t slot, Stream &stream, const Routes &routes,
             Staging &staging) {
    const Compiled &compiled = *graph.compiled;
    const Copy &of = compiled.schedule.copies()[copy];
    if (of.bytes == 0) return {};
    const uint32_t from = compiled.stored_of_value[of.value], to = compiled.stored_of_copy[copy];
    const Located target = graph.locate(to, slot);
    if (const uint32_t input = graph.input_of[of.value]; input != k_no_value)
        if (const void *bytes = graph.inputs[input].slots[slot].borrowed)
            return stream.set(*target.buffer, target.value, 0, bytes, of.bytes);
    const Located source = graph.locate(from, slot);
    const bool computed_in = source.buffer->type() == compiled.devices.types[of.from];
    if (computed_in && routes.direct(of.from, of.to))
        return stream.copy(*target.buffer, target.value, *source.buffer, source.value);
    if (is_plain_host(source.buffer->type()))
        return stream.set(*target.buffer, target.value, 0,
                          static_cast<const std::byte *>(source.buffer->base()) + source.value.offset, of.bytes);
    return staging.carry(stream, source, target, compiled.stored[from], of.bytes);
}

}  // namespace tenon
