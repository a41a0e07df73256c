#include "cmd/support/engine_options.h"

#include <fmt/format.h>

#include "cmd/support/options.h"
#include "cmd/support/registry_options.h"

namespace tenon::cmd {

void add_engine_options(Options &options, EngineChoice &choice) {
    options.positional("MODEL", "GGUF file", choice.model)
        .text("device,d", "LIST",
              "devices to use, first choice first: NAME[:INDEX][:KEY=VALUE]..., comma-separated; 'tenon devices' lists "
              "them; without it accelerators and GPUs, then the CPU",
              choice.devices)
        .texts("pin", "REGEX=DEVICE", "run the nodes whose names match REGEX, such as 'blk\\.[0-9]\\.', on DEVICE",
               choice.pins)
        .integer("threads,t", "N", "threads of CPU devices; without it what the device chooses", 1, 1 << 16,
                 choice.threads)
        .integer("ctx,c", "N",
                 "tokens of context, for prompt and answer together; without it what the model was trained for, "
                 "at most 4096",
                 1, 1 << 29, choice.context)
        .choice("precision",
                "fast: activations may be quantised; exact: all arithmetic and the KV cache in 32-bit floats",
                {"fast", "exact"}, choice.precision)
        .integer_or("offload", "N|auto", "auto",
                    "layers that don't run on the last device of the list, the fallback, counted from the model's end; "
                    "auto: as many as the other devices have room for",
                    0, 1 << 16, choice.offload)
        .integer("slots", "N",
                 "pieces of a prompt that may be in flight at once, so that several devices work at the same time", 1,
                 1 << 10, choice.slots);
    add_plugin_dir_option(options, choice.plugin_dirs);
}

Result<std::vector<Pin>> parse_pins(const EngineChoice &choice) {
    std::vector<Pin> pins;
    for (const std::string &text : choice.pins) {
        TENON_ASSIGN(Pin pin, Pin::parse(text));
        pins.push_back(std::move(pin));
    }
    return pins;
}

namespace {

/// An option that the user gave must not be without effect.
Status set_threads(std::span<const std::shared_ptr<Device>> devices, int64_t threads) {
    bool taken = false;
    for (const std::shared_ptr<Device> &device : devices) {
        if (device->info().kind != DeviceKind::cpu) continue;
        Status status = device->set_option("threads", fmt::to_string(threads));
        if (status.ok()) {
            taken = true;
        } else if (status.code() != Code::not_found) {
            return std::move(status).in(fmt::format("--threads {}", threads));
        }
    }
    if (taken) return {};
    return Status::invalid_argument(
        fmt::format("--threads {}: none of the devices in use is a CPU that has threads to set", threads));
}

}  // namespace

Result<std::vector<std::shared_ptr<Device>>> open_devices(Registry &registry, const EngineChoice &choice) {
    TENON_ASSIGN(auto devices, open_listed(registry, choice.devices));
    if (choice.threads) TENON_TRY(set_threads(devices, *choice.threads));
    return devices;
}

Precision precision_of(const EngineChoice &choice) {
    return choice.precision == "exact" ? Precision::exact : Precision::fast;
}

Result<std::unique_ptr<Session>> make_session(std::shared_ptr<Registry> registry, const EngineChoice &choice,
                                              std::vector<Pin> pins) {
    TENON_ASSIGN(auto devices, open_devices(*registry, choice));
    SessionOptions options;
    options.pins = std::move(pins);
    options.slots = static_cast<uint32_t>(choice.slots);
    return Session::create(std::move(registry), std::move(devices), std::move(options));
}

Result<std::unique_ptr<llm::Engine>> start_engine(std::shared_ptr<Registry> registry, const EngineChoice &choice,
                                                  std::vector<Pin> pins, llm::ModelFile file, int64_t prompt_tokens,
                                                  const llm::LoadProgress &progress) {
    TENON_ASSIGN(auto session, make_session(std::move(registry), choice, std::move(pins)));
    llm::ModelOptions options;
    options.context = choice.context.value_or(0);
    options.precision = precision_of(choice);
    options.progress = progress;
    options.offload = choice.offload;
    TENON_ASSIGN(auto model, llm::Model::load(std::move(file), *session, options));
    return llm::Engine::create(std::move(session), std::move(model), prompt_tokens, progress);
}

Result<int64_t> check_context(const EngineChoice &choice, const llm::ModelFile &file, size_t prompt_tokens,
                              int64_t more) {
    const int64_t trained = file.architecture->shape().context_length;
    TENON_ASSIGN(const int64_t context, llm::choose_context(choice.context.value_or(0), trained));
    const auto tokens = static_cast<int64_t>(prompt_tokens);
    if (tokens <= context && more <= context - tokens) return context;
    const std::string behind = more > 0 ? fmt::format(" and {} are to follow", more) : "";
    return Status::invalid_argument(fmt::format(
        "the prompt has {} tokens{}, but the context holds {}; --ctx N makes it larger (the model was trained for {})",
        tokens, behind, context, trained));
}

}  // namespace tenon::cmd
