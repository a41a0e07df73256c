#include "cmd/support/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cmd/support/options.h"
#include "llm/gguf_text.h"

namespace tenon::cmd {
namespace {

constexpr size_t k_max_bytes = size_t(1) << 30;  // no model reads that much; an endless stream must end somewhere

Status failed(std::string_view name, int error) {
    const Code code = error == ENOENT || error == ENOTDIR ? Code::not_found
                      : error == EACCES                   ? Code::denied
                                                          : Code::invalid_argument;
    return {code,
            fmt::format("{}: can't be read: {}", llm::escaped(name, 4096), std::generic_category().message(error))};
}

Result<std::string> read_all(int fd, std::string_view name) {
    constexpr size_t k_chunk = 1 << 16;
    std::string text;
    for (size_t size = 0;;) {
        text.resize(size + k_chunk);
        const ssize_t got = ::read(fd, text.data() + size, k_chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(name, errno);
        size += size_t(got);
        if (size > k_max_bytes) {
            return Status::invalid_argument(
                fmt::format("{}: more than {} bytes of text", llm::escaped(name, 4096), k_max_bytes));
        }
        if (got == 0) {
            text.resize(size);
            return text;
        }
    }
}

}  // namespace

void add_text_options(Options &options, TextSource &source) {
    options.text("prompt,p", "TEXT", "the text", source.prompt)
        .text("file,f", "FILE", "read the text from FILE; without -p and -f, or as '-', from stdin", source.file)
        .exclusive({"prompt", "file"});
}

Result<std::string> read_text(const TextSource &source) {
    if (source.prompt) return *source.prompt;
    if (source.file && *source.file != "-") {
        const int fd = ::open(source.file->c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) return failed(*source.file, errno);
        Result<std::string> text = read_all(fd, *source.file);
        ::close(fd);
        return text;
    }
    if (!source.file && ::isatty(STDIN_FILENO)) {
        return Status::invalid_argument("no text: give it with -p TEXT, with -f FILE, or through a pipe");
    }
    return read_all(STDIN_FILENO, "stdin");
}

}  // namespace tenon::cmd
