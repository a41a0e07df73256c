#include "registry/plugin.h"

#include <fmt/format.h>

#include <thread>

#include "base/no_throw.h"
#include "base/text.h"

namespace tenon {
namespace {

// A library that was built with sanitizers stays: reports after it was closed couldn't name its functions.
bool may_close(const tn_plugin &root) {
    return (root.flags & TN_PLUGIN_CLOSABLE) && build_sanitizer().empty();
}

}  // namespace

Plugin::Plugin(std::shared_ptr<PluginContext> context, std::shared_ptr<Library> library)
    : context_(std::move(context)), library_(std::move(library)) {}

Result<std::shared_ptr<Plugin>> Plugin::load(const PluginFolder &folder, const Manifest &manifest,
                                             std::shared_ptr<HostServices> services) {
    TENON_ASSIGN(FileId id, folder.check_library(manifest));
    LibraryTurn turn(id);
    // Looked at again, since the turn may have been long in coming and its owner may install a new version meanwhile.
    TENON_ASSIGN(FileId again, folder.check_library(manifest));
    if (again != id)
        return Status{Code::busy, fmt::format("{} was replaced while it was being opened; try again", manifest.file)};
    TENON_ASSIGN(auto library, Library::open(folder, manifest.file, id));
    auto context = std::make_shared<PluginContext>(manifest.name, manifest.devices, std::move(services));
    std::shared_ptr<Plugin> plugin(new Plugin(std::move(context), std::move(library)));
    plugin->file_ = id;
    Status status = no_throw([&] { return plugin->start(manifest); });
    if (!status.ok()) {
        plugin->context_->drop_registrations();
        // What a failed load leaves behind in the library isn't known; with its say-so it may go.
        if (!may_close(plugin->tables_.root)) plugin->library_->stay();
        plugin->library_.reset();
        return status;
    }
    return plugin;
}

Status Plugin::start(const Manifest &manifest) {
    TENON_ASSIGN(tn_plugin_query_v1_fn query, library_->query());
    const tn_plugin *root = nullptr;
    TENON_TRY(call("tn_plugin_query_v1", query, context_->host(), &root));
    if (!root) return Status::internal("tn_plugin_query_v1 answered ok without a table");
    TENON_TRY(read_tables(root, context_->host()->abi, tables_, minor_));
    const std::string own_name = printable(tables_.root.name, 100);
    if (own_name != name()) {
        return Status::invalid_argument(
            fmt::format("the library calls itself '{}', its manifest '{}'", own_name, name()));
    }
    if (tables_.root.abi.min != manifest.abi_min || tables_.root.abi.max != manifest.abi_max) {
        context_->services().logger.log(
            LogLevel::warning, "{}: the library speaks ABI 1.{} to 1.{}, its manifest says 1.{} to 1.{}", name(),
            tables_.root.abi.min, tables_.root.abi.max, manifest.abi_min, manifest.abi_max);
    }
    tn_instance instance = nullptr;
    TENON_TRY(call("load", tables_.root.load, context_->host(), context_->registrar(), minor_, &instance));
    if (!instance) {
        context_->stay();  // it may believe that it is loaded, and can't be told otherwise
        library_->stay();
        return Status::internal("load answered ok without an instance");
    }
    instance_ = instance;
    context_->live()->open();
    return {};
}

Plugin::~Plugin() {
    if (!instance_) return;
    LibraryTurn turn(file_);
    // No object lives, since each holds the plugin; at most an op's infer is still in flight.
    while (!live().shut()) std::this_thread::yield();
    Status status = no_throw([&] { return stop(); });
    if (status.ok()) return;
    context_->services().logger.log(LogLevel::error, "{}: unload failed, its library stays: {}", name(),
                                    status.message());
    library_->stay();
    context_->stay();
}

Status Plugin::unload() {
    LibraryTurn turn(file_);
    if (!instance_) return unloaded();
    if (!live().shut()) {
        return {Code::busy,
                fmt::format("{}: {} of its objects are alive; it can't be unloaded", name(), live().count())};
    }
    Status status = no_throw([&] { return stop(); });
    if (!status.ok()) live().open();
    return status;
}

// In the library's turn, with the door shut: nothing calls into the plugin but this.
Status Plugin::stop() {
    TENON_TRY(call("unload", tables_.root.unload, instance_));
    instance_ = nullptr;
    context_->drop_registrations();
    if (uint64_t bytes = context_->memory().bytes_now()) {
        context_->services().logger.log(LogLevel::warning, "{}: {} bytes of host memory weren't given back at unload",
                                        name(), bytes);
    }
    if (!may_close(tables_.root)) library_->stay();
    library_.reset();
    return {};
}

Status Plugin::unloaded() const {
    return Status::invalid_state(fmt::format("{}: the plugin was unloaded", name()));
}

std::vector<AdapterInfo> Plugin::adapters() {
    std::vector<AdapterInfo> out;
    LiveGuard guard(live());
    if (!guard) return out;
    for (AdapterRow &row : context_->adapters()) {
        uint64_t total = 0, free = 0;
        Status status = call("adapter.memory", tables_.adapter.memory, row.handle, &total, &free);
        if (status.ok()) {
            row.info.total_bytes = total;
            row.info.free_bytes = free;
        } else {
            context_->services().logger.log(LogLevel::debug, "{}: memory isn't known: {}", row.info.name,
                                            status.message());
        }
        out.push_back(std::move(row.info));
    }
    return out;
}

std::vector<BufferType> Plugin::buffer_types() {
    std::vector<BufferType> out;
    for (BufferTypeRow &row : context_->buffer_types()) {
        row.info.name = row.name.c_str();
        out.emplace_back(shared_from_this(), nullptr, row.handle, row.info);
    }
    return out;
}

Result<std::shared_ptr<Device>> Plugin::open_device(std::string_view adapter, const OptionList &options) {
    LiveGuard guard(live());
    if (!guard) return unloaded();
    AdapterRow found{};
    for (AdapterRow &row : context_->adapters())
        if (ascii_lower(row.info.name) == ascii_lower(adapter)) found = std::move(row);
    if (!found.handle) return Status::not_found(fmt::format("{}: no adapter '{}'", name(), adapter));

    std::vector<tn_option> list;
    for (const auto &[key, value] : options) list.push_back({TN_SIZE_OPTION, nullptr, key.c_str(), value.c_str()});
    tn_open open{};
    open.struct_size = TN_SIZE_OPEN;
    open.options = list.empty() ? nullptr : list.data();
    open.option_count = list.size();
    open.option_stride = sizeof(tn_option);
    // The owner first: no handle may lack one.
    std::shared_ptr<Device> device(new Device(shared_from_this(), nullptr, std::move(found.info)));
    tn_device handle = nullptr;
    TENON_TRY(call("adapter.open", tables_.adapter.open, found.handle, &open, &handle));
    if (!handle) return Status::internal(fmt::format("{}: adapter.open answered ok without a device", name()));

    device->handle_ = handle;
    guard.keep();  // from here on the device counts itself
    context_->device_opened({handle, found.handle, &device->generation_, &device->lost_});
    TENON_TRY(device->read_buffer_types());
    return device;
}

}  // namespace tenon
