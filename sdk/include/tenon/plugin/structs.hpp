// The size, stride and head discipline of the ABI (D01, D05 to D07), in one place: structs are read into own zeroed
// copies, arrays are walked by stride, lists are answered in two calls.
#ifndef TENON_PLUGIN_STRUCTS_HPP
#define TENON_PLUGIN_STRUCTS_HPP

#include <cstring>
#include <span>

#include "tenon/plugin/error.hpp"

namespace tenon::plugin {

/// Of a struct of the ABI: its name, its 1.0 prefix and its size in the header that this plugin was built with.
template <class T>
struct Sizes;

#define TENON_PLUGIN_SIZES(type, NAME)                  \
    template <>                                         \
    struct Sizes<type> {                                \
        static constexpr const char *name = #type;      \
        static constexpr uint64_t v1 = TN_V1_##NAME;    \
        static constexpr uint64_t own = TN_SIZE_##NAME; \
    };
TENON_PLUGIN_SIZES(tn_ext, EXT)
TENON_PLUGIN_SIZES(tn_option, OPTION)
TENON_PLUGIN_SIZES(tn_buffer_type_info, BUFFER_TYPE_INFO)
TENON_PLUGIN_SIZES(tn_value, VALUE)
TENON_PLUGIN_SIZES(tn_node, NODE)
TENON_PLUGIN_SIZES(tn_graph, GRAPH)
TENON_PLUGIN_SIZES(tn_host, HOST)
TENON_PLUGIN_SIZES(tn_adapter_info, ADAPTER_INFO)
TENON_PLUGIN_SIZES(tn_graph_sink, GRAPH_SINK)
TENON_PLUGIN_SIZES(tn_op_info, OP_INFO)
TENON_PLUGIN_SIZES(tn_registrar, REGISTRAR)
TENON_PLUGIN_SIZES(tn_open, OPEN)
TENON_PLUGIN_SIZES(tn_buffer_info, BUFFER_INFO)
TENON_PLUGIN_SIZES(tn_group, GROUP)
TENON_PLUGIN_SIZES(tn_in_place, IN_PLACE)
TENON_PLUGIN_SIZES(tn_place, PLACE)
TENON_PLUGIN_SIZES(tn_placement, PLACEMENT)
TENON_PLUGIN_SIZES(tn_binding, BINDING)
TENON_PLUGIN_SIZES(tn_bind, BIND)
TENON_PLUGIN_SIZES(tn_run, RUN)
#undef TENON_PLUGIN_SIZES

/// A zeroed struct with its size filled in.
template <class T>
T make_struct() {
    T own{};
    own.struct_size = Sizes<T>::own;
    return own;
}

/// This SDK knows no extensions yet: required ones are refused, others ignored (D07).
inline void check_extensions(const void *next, std::string_view what) {
    for (uint32_t length = 0; next != nullptr; ++length) {
        tn_ext own{};
        const auto *from = static_cast<const tn_ext *>(next);
        if (from->struct_size < TN_V1_EXT || length > 1000)
            fail(TN_INVALID_ARGUMENT, what, ": broken chain of extensions");
        tn_read(&own, TN_SIZE_EXT, from);
        if ((own.flags & ~TN_EXT_REQUIRED) != 0 || own.reserved != 0) {
            fail(TN_INVALID_ARGUMENT, what, ": an extension has unlisted flags or a reserved word that isn't zero");
        }
        if ((own.flags & TN_EXT_REQUIRED) != 0) {
            fail(TN_UNSUPPORTED, what, ": required extension '", own.name != nullptr ? own.name : "", "' is unknown");
        }
        next = own.next;
    }
}

/// A copy of any size of struct in this header's size, absent fields zero. Refuses null and sizes below the 1.0 prefix.
template <class T>
T read_struct(const T *from) {
    if (from == nullptr) fail(TN_INVALID_ARGUMENT, Sizes<T>::name, " is null");
    if (from->struct_size < Sizes<T>::v1) {
        fail(TN_INVALID_ARGUMENT, Sizes<T>::name, " has ", from->struct_size, " bytes, fewer than ", Sizes<T>::v1);
    }
    T own{};
    tn_read(&own, Sizes<T>::own, from);
    if (own.next != nullptr) check_extensions(own.next, Sizes<T>::name);
    return own;
}

/// Refuses an output struct that can't be written; to be called before anything is.
template <class T>
void check_output(const T *out) {
    if (out == nullptr) fail(TN_INVALID_ARGUMENT, "output ", Sizes<T>::name, " is null");
    if (out->struct_size < Sizes<T>::v1) {
        fail(TN_INVALID_ARGUMENT, "output ", Sizes<T>::name, " has ", out->struct_size, " bytes, fewer than ",
             Sizes<T>::v1);
    }
    if (out->next != nullptr) check_extensions(out->next, Sizes<T>::name);
}

/// Writes own to out, up to the smaller size, the head excepted.
template <class T>
void write_struct(T *out, const T &own) {
    check_output(out);
    tn_write(out, &own);
}

inline void check_zero(uint64_t reserved, std::string_view what) {
    if (reserved != 0) fail(TN_INVALID_ARGUMENT, what, ": a reserved word isn't zero");
}

/// A pointer that must be there.
template <class T>
T *need(T *pointer, std::string_view what) {
    if (pointer == nullptr) fail(TN_INVALID_ARGUMENT, what, " is null");
    return pointer;
}

/// An array of the ABI: walked by stride, each element read into an own copy (D06). Refuses a null pointer with
/// elements, a stride below the elements' 1.0 prefix or that isn't whole words, and a length beyond the address space.
template <class T>
class SpanView {
public:
    SpanView(const T *first, uint64_t count, uint64_t stride) : first_(first), count_(count), stride_(stride) {
        if (count == 0) return;
        if (first == nullptr) fail(TN_INVALID_ARGUMENT, "array of ", count, " ", Sizes<T>::name, " is null");
        if (stride < Sizes<T>::v1 || stride % alignof(T) != 0) {
            fail(TN_INVALID_ARGUMENT, "array of ", Sizes<T>::name, ": stride ", stride, " isn't right");
        }
        if (count > UINT64_MAX / 2 / stride)
            fail(TN_INVALID_ARGUMENT, "array of ", count, " ", Sizes<T>::name, " is too long");
    }

    uint64_t size() const noexcept { return count_; }

    T operator[](uint64_t index) const {
        const auto *at = reinterpret_cast<const T *>(reinterpret_cast<const char *>(first_) + index * stride_);
        if (at->struct_size > stride_)
            fail(TN_INVALID_ARGUMENT, Sizes<T>::name, " ", index, " is larger than its stride");
        return read_struct(at);
    }

private:
    const T *first_;
    uint64_t count_, stride_;
};

/// Answers a list of structs. Thrown TN_TOO_SMALL leaves the length stored and out untouched, as "Lists" says.
template <class T>
void give_structs(std::span<const T> own, uint64_t *io_count, uint64_t stride, T *out) {
    need(io_count, "the list's count");
    const uint64_t room = *io_count;
    if (out != nullptr && room >= own.size() && !own.empty()) {
        if (stride < Sizes<T>::v1 || stride % alignof(T) != 0)
            fail(TN_INVALID_ARGUMENT, "list: stride ", stride, " isn't right");
        auto at = [&](size_t i) { return reinterpret_cast<T *>(reinterpret_cast<char *>(out) + i * stride); };
        for (size_t i = 0; i < own.size(); ++i) check_output(at(i));  // all of them before the first is written
        for (size_t i = 0; i < own.size(); ++i) tn_write(at(i), &own[i]);
    }
    *io_count = own.size();
    if (out != nullptr && room < own.size()) throw Error(TN_TOO_SMALL, "list: capacity too small");
}

/// Answers a list of plain items: words, handles, characters.
template <class T>
void give_items(std::span<const T> own, uint64_t *io_count, T *out) {
    need(io_count, "the list's count");
    const uint64_t room = *io_count;
    *io_count = own.size();
    if (out == nullptr) return;
    if (room < own.size()) throw Error(TN_TOO_SMALL, "list: capacity too small");
    if (!own.empty()) std::memcpy(out, own.data(), own.size() * sizeof(T));
}

/// Answers a text: a list of char with its final 0.
inline void give_text(const std::string &text, uint64_t *io_bytes, char *out) {
    give_items(std::span<const char>(text.c_str(), text.size() + 1), io_bytes, out);
}

}  // namespace tenon::plugin
#endif
