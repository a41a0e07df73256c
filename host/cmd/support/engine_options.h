// What commands that compute with a model have in common: which devices, how precise, how much context; and the way
// from those choices to an engine that is ready.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llm/engine.h"
#include "tenon/registry.h"
#include "tenon/schedule.h"
#include "tenon/status.h"

namespace tenon::cmd {

class Options;

/// The user's choices.
struct EngineChoice {
    std::string model;
    std::string devices;  // empty: the registry's default list
    std::vector<std::string> plugin_dirs, pins;
    std::optional<int64_t> threads;
    std::optional<int64_t> context;
    std::optional<int64_t> offload;  // layers; none: what there is room for
    int64_t slots = 1;
    std::string precision = "fast";
};

/// Declares MODEL, --device, --plugin-dir, --threads, --ctx, --precision, --pin, --offload and --slots.
void add_engine_options(Options &options, EngineChoice &choice);

/// The pins; invalid_argument, which is wrong usage, for one that can't be parsed.
Result<std::vector<Pin>> parse_pins(const EngineChoice &choice);

/// Opens the devices, as the user chose them, and sets their threads. Errors say what there is instead.
Result<std::vector<std::shared_ptr<Device>>> open_devices(Registry &registry, const EngineChoice &choice);

/// Of the graphs that are to be run.
Precision precision_of(const EngineChoice &choice);

/// A session of the chosen devices.
Result<std::unique_ptr<Session>> make_session(std::shared_ptr<Registry> registry, const EngineChoice &choice,
                                              std::vector<Pin> pins);

/// Loads `file` onto devices of `registry`, ready for a first prompt of `prompt_tokens`. `progress` as in
/// llm::ModelOptions, for all stages.
Result<std::unique_ptr<llm::Engine>> start_engine(std::shared_ptr<Registry> registry, const EngineChoice &choice,
                                                  std::vector<Pin> pins, llm::ModelFile file, int64_t prompt_tokens,
                                                  const llm::LoadProgress &progress);

/// Tokens of context that `choice` gives for the model. invalid_argument if `prompt_tokens`, and `more` after them,
/// don't fit: the message has both numbers.
Result<int64_t> check_context(const EngineChoice &choice, const llm::ModelFile &file, size_t prompt_tokens,
                              int64_t more);

}  // namespace tenon::cmd
