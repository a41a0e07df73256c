// Runs a small graph on a device list with given bytes, and answers its outputs as floats.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "schedule_check.h"
#include "tenon/session.h"

namespace tenon::testing {

inline void require_ok(const Status &status) {
    REQUIRE_MESSAGE(status.ok(), status.message());
}

/// `mock_devices`: how many the mock has, as its option says it; empty: its default.
inline std::shared_ptr<Registry> make_registry(const std::string &mock_devices = {}) {
    RegistryOptions options;
    if (!mock_devices.empty()) options.plugin_options = {{"mock.devices", mock_devices}};
    options.plugin_dirs = {TENON_TEST_PLUGINS};
    options.search_environment = options.search_user = options.search_install = false;
    auto registry = Registry::create(std::move(options));
    REQUIRE_MESSAGE(registry.ok(), registry.status().message());
    return *registry;
}

using Bytes = std::vector<std::byte>;
/// By value name: inputs, weights and the states' first contents.
using Data = std::map<std::string, Bytes>;

template <class T>
Bytes to_bytes(const std::vector<T> &values) {
    Bytes bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

inline Bytes random_floats(size_t count, uint32_t seed, float scale = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float &value : values) value = normal(random);
    return to_bytes(values);
}

inline std::unique_ptr<Session> session_on(const std::shared_ptr<Registry> &registry, const std::string &list,
                                           std::vector<Pin> pins = {}) {
    auto devices = registry->open(list);
    REQUIRE_MESSAGE(devices.ok(), devices.status().message());
    SessionOptions options;
    options.pins = std::move(pins);
    auto session = Session::create(registry, *devices, std::move(options));
    REQUIRE_MESSAGE(session.ok(), session.status().message());
    return *std::move(session);
}

/// Tensors in these homes; those without data are cleared.
inline Result<TensorMap> load_tensors(const Graph &graph, std::span<const TensorHome> homes, const Data &data) {
    TensorMap tensors;
    for (const TensorHome &home : homes) {
        const Value &value = graph.values()[home.value];
        const TensorSpec spec{value.name, value.type, value.shape};
        TENON_ASSIGN(auto made, allocate_tensors(home.buffer_type, {&spec, 1}, Usage::any));
        const auto found = data.find(value.name);
        TENON_TRY(found == data.end() ? made[0].clear() : made[0].set(0, found->second));
        tensors.set(value.name, made[0]);
    }
    return tensors;
}

/// A session with a graph's tensors loaded and the graph prepared.
struct Runner {
    std::shared_ptr<Registry> registry;
    std::unique_ptr<Session> session;
    std::shared_ptr<Executable> executable;
    TensorMap tensors;
    std::vector<Pin> pins;
    uint32_t slots = 1;

    Status prepare(const Graph &graph, const std::string &devices, const Data &data, std::vector<Pin> pins = {},
                   uint32_t slots = 1) {
        if (!registry) registry = make_registry();
        TENON_ASSIGN(auto opened, registry->open(devices));
        SessionOptions options;
        options.pins = this->pins = std::move(pins);
        options.slots = this->slots = slots;
        TENON_ASSIGN(session, Session::create(registry, std::move(opened), std::move(options)));
        return load(graph, data);
    }

    Status load(const Graph &graph, const Data &data) {
        TENON_ASSIGN(const auto homes, session->place_tensors(graph));
        TENON_ASSIGN(tensors, load_tensors(graph, homes, data));
        TENON_ASSIGN(executable, session->prepare(graph, tensors));
        const auto devices = session->devices();
        return check_compiled(graph, {devices.begin(), devices.end()}, tensors, pins, slots).in("the memory plan");
    }

    Status run(const Data &data, uint64_t cancel_token = 0) {
        const Graph graph = executable->schedule().graph();
        for (ValueId input : graph.inputs())
            TENON_TRY(session->input_write(*executable, input, data.at(graph.values()[input].name)));
        return session->run(*executable, cancel_token);
    }

    std::vector<float> output(size_t index) {
        const Graph graph = executable->schedule().graph();
        const Value &value = graph.values()[graph.outputs()[index]];
        std::vector<float> floats(size_t(*value.shape.elements()));
        const Status status =
            session->read(*executable, graph.outputs()[index], std::as_writable_bytes(std::span(floats)));
        REQUIRE_MESSAGE(status.ok(), status.message());
        return floats;
    }
};

/// Normalised mean squared error: the error's energy over the reference's.
inline double nmse(const std::vector<float> &got, const std::vector<float> &want) {
    REQUIRE(got.size() == want.size());
    double error = 0, energy = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        REQUIRE(std::isfinite(got[i]));
        error += (double(got[i]) - want[i]) * (double(got[i]) - want[i]);
        energy += double(want[i]) * want[i];
    }
    return energy > 0 ? error / energy : error;
}

}  // namespace tenon::testing
