#include "registry/plugin_folder.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/text.h"

namespace tenon {
namespace {

std::string system_text(int error) {
    return std::strerror(error);
}

// Owner and rights: only root and the running user may be able to change what is loaded into this process.
Status check_trust(const struct stat &info, std::string_view what) {
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        return {Code::denied, fmt::format("{} is owned by user {}, not by root or user {} who runs this", what,
                                          info.st_uid, geteuid())};
    }
    if (info.st_mode & (S_IWGRP | S_IWOTH)) {
        return {Code::denied, fmt::format("{} can be written by {} (mode {:04o}); 'chmod go-w' it", what,
                                          info.st_mode & S_IWOTH ? "others" : "its group", info.st_mode & 07777u)};
    }
    return {};
}

// Opens an entry of the folder for reading. Never waits (a fifo) and follows links only to a name in the same folder.
Result<UniqueFd> open_entry(int folder, std::string name, struct stat &info) {
    const std::string asked = printable(name, 255);
    for (int links = 0; links < 8; ++links) {
        UniqueFd fd(openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (fd.valid()) {
            if (fstat(fd.get(), &info) != 0) return Status::internal(fmt::format("{}: {}", asked, system_text(errno)));
            if (!S_ISREG(info.st_mode)) return Status::invalid_argument(fmt::format("{} isn't a regular file", asked));
            TENON_TRY(check_trust(info, asked));
            return fd;
        }
        if (errno == ENOENT) return Status::not_found(fmt::format("{} is missing", asked));
        if (errno != ELOOP)
            return Status{Code::denied, fmt::format("{} can't be opened: {}", asked, system_text(errno))};
        std::array<char, 256> target{};
        ssize_t size = readlinkat(folder, name.c_str(), target.data(), target.size());
        name = size > 0 ? std::string(target.data(), size_t(size)) : std::string();
        if (name.empty() || name.size() > 255 || name == "." || name == ".." || name.find('/') != std::string::npos) {
            return Status{Code::denied, fmt::format("{} is a symbolic link that leaves the plugin's folder", asked)};
        }
    }
    return Status{Code::denied, fmt::format("{} is a chain of too many symbolic links", asked)};
}

constexpr uint16_t host_machine() {
#if defined(__x86_64__)
    return EM_X86_64;
#elif defined(__aarch64__)
    return EM_AARCH64;
#elif defined(__riscv)
    return EM_RISCV;
#elif defined(__powerpc64__)
    return EM_PPC64;
#elif defined(__s390x__)
    return EM_S390;
#else
    return EM_NONE;  // unknown here: the loader judges alone
#endif
}

bool read_at(int fd, void *to, size_t bytes, uint64_t offset) {
    return offset <= uint64_t(std::numeric_limits<off_t>::max()) &&
           pread(fd, to, bytes, off_t(offset)) == ssize_t(bytes);
}

using ElfHeader = std::conditional_t<sizeof(void *) == 8, Elf64_Ehdr, Elf32_Ehdr>;
using ElfSegment = std::conditional_t<sizeof(void *) == 8, Elf64_Phdr, Elf32_Phdr>;

// What the loader maps has to lie within the file: it doesn't look, and touching a page beyond the end of a library
// that was cut off (an interrupted copy) kills the process.
Status check_segments(int fd, const std::string &file, const ElfHeader &header, uint64_t file_bytes) {
    if (header.e_phentsize != sizeof(ElfSegment))
        return Status::invalid_argument(fmt::format("{}: its ELF header is broken", file));
    for (uint32_t i = 0; i < header.e_phnum; ++i) {
        ElfSegment segment;
        uint64_t at = 0, end = 0;
        bool fits = !__builtin_add_overflow(uint64_t(header.e_phoff), uint64_t(i) * sizeof segment, &at) &&
                    read_at(fd, &segment, sizeof segment, at);
        fits = fits && !__builtin_add_overflow(uint64_t(segment.p_offset), uint64_t(segment.p_filesz), &end);
        if (!fits || (segment.p_type == PT_LOAD && end > file_bytes)) {
            return Status::invalid_argument(fmt::format("{} is cut off: {} bytes are left of it", file, file_bytes));
        }
    }
    return {};
}

// System V ABI, chapters 4 and 5. The first bytes are the same for both classes.
Status check_elf(int fd, const std::string &file, uint64_t file_bytes) {
    ElfHeader header{};
    if (!read_at(fd, &header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return Status::invalid_argument(fmt::format("{} isn't an ELF shared object", file));
    }
    constexpr bool little = std::endian::native == std::endian::little;
    constexpr unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (header.e_ident[EI_CLASS] != own_class) {
        return Status::unsupported(fmt::format("{} is a {}-bit library, this program has {} bits", file,
                                               header.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64, sizeof(void *) * 8));
    }
    if (header.e_ident[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB)) {
        return Status::unsupported(fmt::format("{} is of the other byte order", file));
    }
    if (header.e_type != ET_DYN)
        return Status::invalid_argument(fmt::format("{} is an ELF file, but no shared object", file));
    if (host_machine() != EM_NONE && header.e_machine != host_machine()) {
        return Status::unsupported(fmt::format("{} is for another kind of machine (ELF machine {}, this is {})", file,
                                               header.e_machine, host_machine()));
    }
    return check_segments(fd, file, header, file_bytes);
}

}  // namespace

bool raised_privileges() noexcept {
    return getauxval(AT_SECURE) != 0 || getuid() != geteuid() || getgid() != getegid();
}

Result<PluginFolder> PluginFolder::open(const std::filesystem::path &path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) {
        Code code = errno == ENOENT ? Code::not_found : Code::denied;
        return Status{code, fmt::format("the folder can't be opened: {}", system_text(errno))};
    }
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return Status::internal(fmt::format("the folder: {}", system_text(errno)));
    TENON_TRY(check_trust(info, "the folder"));
    return PluginFolder(path, std::move(fd));
}

Result<std::string> PluginFolder::read_manifest() const {
    struct stat info;
    TENON_ASSIGN(UniqueFd fd, open_entry(fd_.get(), k_manifest, info));
    std::string text(k_max_manifest_bytes + 1, '\0');
    size_t size = 0;
    while (size < text.size()) {
        ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status::internal(fmt::format("{} can't be read: {}", k_manifest, system_text(errno)));
        if (got == 0) break;
        size += size_t(got);
    }
    text.resize(size);
    if (size > k_max_manifest_bytes) {
        return Status::invalid_argument(fmt::format("{} is longer than {} bytes", k_manifest, k_max_manifest_bytes));
    }
    return text;
}

Result<FileId> PluginFolder::check_library(const Manifest &manifest) const {
    struct stat info;
    TENON_ASSIGN(UniqueFd fd, open_entry(fd_.get(), manifest.file, info));
    TENON_TRY(check_elf(fd.get(), manifest.file, uint64_t(info.st_size)));
    return FileId{info.st_dev, info.st_ino};
}

Result<UniqueFd> PluginFolder::duplicate() const {
    UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
    if (!fd.valid())
        return Status::internal(fmt::format("{}: no more file descriptors: {}", path_.string(), system_text(errno)));
    return fd;
}

Result<std::string> path_through(int folder_fd, const std::string &file) {
    // The number that /proc itself gives, which isn't getpid() where /proc belongs to another pid namespace; not
    // "self", which a debugger would read as itself.
    std::array<char, 32> pid{};
    if (readlink("/proc/self", pid.data(), pid.size() - 1) <= 0) {
        return Status::unsupported("/proc isn't mounted, without which a plugin can't be opened safely");
    }
    return fmt::format("/proc/{}/fd/{}/{}", pid.data(), folder_fd, file);
}

}  // namespace tenon
