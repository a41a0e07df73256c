#include "cmd/support/graphviz.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/process.hpp>
#include <future>

namespace tenon::cmd {

Result<std::string> render_svg(std::string_view dot) {
    namespace process = boost::process;
    try {
        const auto program = process::search_path("dot");
        if (program.empty())
            return Status::not_found(
                "SVG takes Graphviz, whose program 'dot' isn't in PATH: install the package graphviz, or take "
                "'--format "
                "dot'");
        // All three at once: whoever filled one pipe while the other end waits at another would wait for ever.
        boost::asio::io_context context;
        std::future<std::string> drawing, words;
        process::child child(program, "-Tsvg",
                             process::std_in<boost::asio::buffer(dot.data(), dot.size()), process::std_out> drawing,
                             process::std_err > words, context);
        context.run();
        child.wait();
        std::string text = words.get();
        while (!text.empty() && text.back() == '\n') text.pop_back();
        if (child.exit_code() == 0) return drawing.get();
        return Status::internal(
            fmt::format("'{} -Tsvg' ended with exit code {}: {}", program.string(), child.exit_code(), text));
    } catch (const std::exception &error) {
        return Status::internal(fmt::format("running 'dot -Tsvg': {}", error.what()));
    }
}

}  // namespace tenon::cmd
