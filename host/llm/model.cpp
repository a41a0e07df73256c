#include "llm/model.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "llm/gguf_text.h"
#include "llm/offload.h"

namespace tenon::llm {
namespace {

constexpr int64_t k_default_context = 4096;
constexpr int64_t k_max_context = 1 << 29;
/// Bytes that are copied at a time: the most that loading holds twice.
constexpr uint64_t k_piece_bytes = 16 << 20;

/// Lets go of mapped pages that have been copied: they are clean, and the system can read them again.
void drop_pages(std::span<const std::byte> bytes) {
    static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data()), end = begin + bytes.size();
    const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    // A hint: without it the copy is as right, only memory is given back later.
    if (last > first) madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
}

/// Bytes that a run with one token reads of weights: all of those that some op goes through, of tables one row.
uint64_t read_per_token(const Graph &graph) {
    uint64_t bytes = 0;
    std::set<ValueId> seen;
    for (const Node &node : graph.nodes()) {
        for (const ValueId input : node.inputs) {
            if (input == k_no_value) continue;
            const ValueId id = graph.base(input);
            const Value &value = graph.values()[id];
            if (!(value.flags & TN_VALUE_WEIGHT)) continue;
            const auto whole = static_cast<uint64_t>(canonical_bytes(value.type, value.shape.sizes()).value_or(0));
            if (node.op == TN_OP_GATHER_ROWS)
                bytes += whole / static_cast<uint64_t>(std::max<int64_t>(1, value.shape[0]));
            else if (seen.insert(id).second)
                bytes += whole;
        }
    }
    return bytes;
}

/// A model in several files has its metadata in the first and its tensors in all: no one of them can be run.
Status check_whole(const Gguf &gguf) {
    TENON_ASSIGN(const std::optional<uint64_t> count, gguf.get_uint("split.count"));
    if (count.value_or(1) <= 1) return {};
    TENON_ASSIGN(const std::optional<uint64_t> number, gguf.get_uint("split.no"));
    return Status::unsupported(
        fmt::format("{}: this is {} of the {} files that the model was split into; split models can't be loaded, join "
                    "the parts into one file first ('llama-gguf-split --merge' does it)",
                    escaped(gguf.path().native(), 4096), number ? fmt::format("part {}", *number + 1) : "one", *count));
}

}  // namespace

Result<int64_t> choose_context(int64_t asked, int64_t trained) {
    if (asked == 0) return std::min(trained, k_default_context);
    if (asked > 0 && asked <= k_max_context) return asked;
    return Status::invalid_argument(
        fmt::format("a context of {} tokens can't be: expected 1 to {}", asked, k_max_context));
}

Result<ModelFile> ModelFile::open(const std::filesystem::path &path) {
    ModelFile file;
    TENON_ASSIGN(file.gguf, Gguf::open(path));
    TENON_TRY(check_whole(*file.gguf));
    TENON_ASSIGN(file.architecture, read_architecture(file.gguf));
    TENON_ASSIGN(file.tokenizer, Tokenizer::from_gguf(file.gguf));
    if (file.tokenizer->vocabulary_size() > file.architecture->shape().vocabulary)
        return Status::invalid_argument(
            fmt::format("{}: the tokenizer has {} tokens, but tensor 'token_embd.weight' only {} rows", path.string(),
                        file.tokenizer->vocabulary_size(), file.architecture->shape().vocabulary));
    return file;
}

GraphKey Model::key(int64_t tokens, int64_t rows) const {
    return {
        .tokens = tokens, .rows = rows, .capacity = cache_rows_, .cache_rows = cache_rows_, .precision = precision_};
}

/// Brings the tensors of a graph to their homes, memory by memory.
class Model::Loader {
public:
    Loader(Model &model, const Graph &graph, const ModelOptions &options)
        : model_(model), gguf_(*model.file_.gguf), graph_(graph), options_(options) {}

    Status load(std::span<const TensorHome> homes) {
        for (const TensorHome &home : homes) sort_in(home);
        for (const Room &room : rooms_)
            for (const ValueId id : room.weights) total_ += tensor_of(id).bytes;
        TENON_TRY(report());
        for (Room &room : rooms_) TENON_TRY(map_weights(room));
        for (const Room &room : rooms_) TENON_TRY(copy_weights(room));
        for (const Room &room : rooms_) {
            TENON_TRY(make_caches(room));
            TENON_TRY(report());
        }
        return {};
    }

private:
    Status report() const {
        if (!options_.progress) return {};
        return options_.progress("loading weights", model_.memory_.mapped_bytes + model_.memory_.copied_bytes, total_);
    }

    /// What goes into one kind of memory of one device.
    struct Room {
        uint32_t device;
        BufferType type;
        std::vector<ValueId> weights, states;
    };

    void sort_in(const TensorHome &home) {
        auto room = std::ranges::find_if(
            rooms_, [&](const Room &r) { return r.device == home.device && r.type == home.buffer_type; });
        if (room == rooms_.end()) room = rooms_.insert(room, {home.device, home.buffer_type, {}, {}});
        const bool weight = value(home.value).flags & TN_VALUE_WEIGHT;
        (weight ? room->weights : room->states).push_back(home.value);
    }

    const Value &value(ValueId id) const { return graph_.values()[id]; }
    /// Weights carry the names that the file gave them, so each has its tensor.
    const GgufTensor &tensor_of(ValueId id) const { return *gguf_.find_tensor(value(id).name); }
    TensorSpec spec_of(ValueId id) const { return {value(id).name, value(id).type, value(id).shape}; }

    /// Takes out of room.weights those that can be used where the file is mapped.
    Status map_weights(Room &room) {
        const BufferType &type = room.type;
        const std::span<const std::byte> mapping = gguf_.mapping();
        if (room.weights.empty() || !type.is_host() || !type.can_import() || type.is_packed()) return {};
        if (type.max_bytes() && mapping.size() > type.max_bytes()) return {};
        // The buffer is never written: it is asked for as read-only, as it is mapped.
        auto buffer = type.import_host(const_cast<std::byte *>(mapping.data()), mapping.size(), false);
        if (!buffer.ok()) {
            const Code code = buffer.status().code();
            return code == Code::unsupported || code == Code::unimplemented ? Status() : std::move(buffer).status();
        }
        std::vector<ValueId> rest;
        for (const ValueId id : room.weights) {
            const GgufTensor &tensor = tensor_of(id);
            if (tensor.file_offset % std::max<uint64_t>(1, type.alignment()) != 0) {
                rest.push_back(id);  // GGUF aligns to 32 bytes as a rule, a device may want more
                continue;
            }
            TENON_ASSIGN(Tensor mapped, Tensor::in_buffer(*buffer, tensor.file_offset, spec_of(id)));
            model_.memory_.mapped_bytes += tensor.bytes;
            model_.tensors_.set(value(id).name, std::move(mapped));
            TENON_TRY(report());
        }
        room.weights = std::move(rest);
        return {};
    }

    Status copy_weights(const Room &room) {
        if (room.weights.empty()) return {};
        std::vector<TensorSpec> specs;
        for (const ValueId id : room.weights) specs.push_back(spec_of(id));
        TENON_ASSIGN(std::vector<Tensor> tensors, allocate_tensors(room.type, specs, Usage::weights));
        for (size_t i = 0; i < tensors.size(); ++i) {
            TENON_TRY(copy_weight(tensor_of(room.weights[i]), tensors[i]));
            model_.tensors_.set(specs[i].name, std::move(tensors[i]));
        }
        return {};
    }

    Status copy_weight(const GgufTensor &from, Tensor &to) {
        const std::span<const std::byte> bytes = gguf_.mapping().subspan(from.file_offset, from.bytes);
        // Whole rows, since a packed layout is made from rows.
        const uint64_t rows = static_cast<uint64_t>(std::max<int64_t>(1, *to.shape().elements() / to.shape().back()));
        const uint64_t row_bytes = from.bytes / rows;
        const uint64_t step = std::max<uint64_t>(1, k_piece_bytes / row_bytes) * row_bytes;
        for (uint64_t at = 0; at < from.bytes; at += step) {
            const auto piece = bytes.subspan(at, std::min(step, from.bytes - at));
            TENON_TRY(to.set(at, piece));
            drop_pages(piece);
            model_.memory_.copied_bytes += piece.size();
            TENON_TRY(report());
        }
        return {};
    }

    Status make_caches(const Room &room) {
        if (room.states.empty()) return {};
        std::vector<TensorSpec> specs;
        for (const ValueId id : room.states) specs.push_back(spec_of(id));
        auto made = allocate_tensors(room.type, specs, Usage::any);
        if (!made.ok())
            return std::move(made).status().in(
                fmt::format("the KV cache for {} tokens (--ctx takes fewer)", model_.context_));
        for (size_t i = 0; i < made->size(); ++i) {
            Tensor &cache = (*made)[i];
            // Where attention is decomposed, rows that no token may look at are still multiplied, by zero: they must
            // not hold a NaN. A device that claims attention never reads them, so their pages needn't be touched.
            if (model_.capacity_matters_) TENON_TRY(cache.clear());
            model_.memory_.cache_bytes += cache.canonical_bytes();
            model_.tensors_.set(specs[i].name, std::move(cache));
        }
        return {};
    }

    Model &model_;
    const Gguf &gguf_;
    const Graph &graph_;
    const ModelOptions &options_;
    std::vector<Room> rooms_;
    uint64_t total_ = 0;  // bytes of weights
};

Result<std::unique_ptr<Model>> Model::load(ModelFile file, Session &session, const ModelOptions &options) {
    std::unique_ptr<Model> model(new Model());
    model->file_ = std::move(file);
    const std::string path = model->gguf().path().string();
    TENON_ASSIGN(model->context_, choose_context(options.context, model->shape().context_length));
    model->cache_rows_ = (model->context_ + k_cache_block_rows - 1) / k_cache_block_rows * k_cache_block_rows;
    model->precision_ = options.precision;
    auto graph = model->architecture().build(model->key(1, 1));
    if (!graph.ok()) return std::move(graph).status().in(path);
    model->memory_.bytes_read_per_token = read_per_token(*graph);
    const auto load = [&]() -> Status {
        TENON_ASSIGN(const auto homes,
                     place_model(session, model->architecture(), model->key(1, 1), *graph, options.offload));
        TENON_ASSIGN(model->capacity_matters_, session.expands(*graph, homes, "attention"));
        return Loader(*model, *graph, options).load(homes);
    };
    if (Status status = load(); !status.ok()) return std::move(status).in(path);
    return model;
}

}  // namespace tenon::llm
