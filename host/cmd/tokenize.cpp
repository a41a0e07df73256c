// tenon tokenize MODEL: text to token ids and back.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cmd/command.h"
#include "cmd/support/input.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"
#include "llm/chat_template.h"
#include "llm/gguf_text.h"
#include "llm/tokenizer/tokenizer.h"
#include "llm/tokenizer/utf8.h"

namespace tenon::cmd {
namespace {

using llm::ChatMessage;
using llm::ChatTemplate;
using llm::Tokenizer;
using Json = nlohmann::ordered_json;

struct Request {
    std::string model;
    TextSource source;
    std::optional<std::string> decode;  // ids; "-": from the text source
    bool json = false, chat = false, batch = false;
};

/// The ids in `text`, parted by commas or white space; brackets as of a JSON array are let through.
Result<std::vector<int32_t>> parse_ids(std::string_view text) {
    constexpr std::string_view separators = ", \t\r\n[]";
    std::vector<int32_t> ids;
    for (size_t at = text.find_first_not_of(separators); at < text.size();
         at = text.find_first_not_of(separators, at)) {
        const size_t end = std::min(text.find_first_of(separators, at), text.size());
        int32_t id = 0;
        const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
        if (error != std::errc() || stop != text.data() + end) {
            return Status::invalid_argument(
                fmt::format("'{}' isn't a token id", llm::escaped(text.substr(at, end - at), 40)));
        }
        ids.push_back(id);
        at = end;
    }
    return ids;
}

/// [{"role": "user", "content": "..."}, ...]
Result<std::vector<ChatMessage>> parse_messages(std::string_view text) {
    const auto wrong = [] {
        return Status::invalid_argument(
            R"(--chat takes a JSON array of messages such as [{"role": "user", "content": "Hello"}])");
    };
    const Json parsed = Json::parse(text, nullptr, false);
    if (!parsed.is_array()) return wrong();
    std::vector<ChatMessage> messages;
    for (const Json &message : parsed) {
        if (!message.is_object()) return wrong();
        const auto role = message.find("role"), content = message.find("content");
        if (role == message.end() || content == message.end()) return wrong();
        if (!role->is_string() || !content->is_string()) return wrong();
        messages.push_back({role->get<std::string>(), content->get<std::string>()});
    }
    return messages;
}

class Tokenize {
public:
    Tokenize(const Request &request, const Tokenizer &tokenizer, const ChatTemplate *chat, Output &out)
        : request_(request), tokenizer_(tokenizer), chat_(chat), out_(out) {}

    /// Prints the answer to one text: its tokens, or what its ids stand for.
    Status answer(std::string_view text) { return request_.decode ? decode(text) : encode(text); }

    /// How many bytes of all texts no token can express.
    size_t lost_bytes() const { return lost_bytes_; }

private:
    Status decode(std::string_view ids_text) {
        TENON_ASSIGN(const std::vector<int32_t> ids, parse_ids(ids_text));
        TENON_ASSIGN(const std::string text, tokenizer_.decode(ids));
        if (request_.json) {
            out_.write(json_text({{"text", llm::utf8_replace_invalid(text)}}) + "\n");
        } else {
            out_.write(text);
            if (!text.ends_with('\n')) out_.write("\n");
        }
        return {};
    }

    Status encode(std::string_view text) {
        llm::EncodeOptions options;
        std::string rendered;
        if (chat_ != nullptr) {
            TENON_ASSIGN(const std::vector<ChatMessage> messages, parse_messages(text));
            rendered = chat_->render(messages, true);
            text = rendered;
            options.add_special = !chat_->writes_bos();
        }
        for (char byte : tokenizer_.missing_bytes()) {
            lost_bytes_ += static_cast<size_t>(std::count(text.begin(), text.end(), byte));
        }
        TENON_ASSIGN(const std::vector<int32_t> tokens, tokenizer_.encode(text, options));
        if (!request_.json) {
            for (int32_t id : tokens) {
                out_.print("{:>6} {}\n", id, llm::escaped(tokenizer_.piece(id), std::string::npos));
            }
            return {};
        }
        Json pieces = Json::array();
        for (int32_t id : tokens) pieces.push_back(llm::utf8_replace_invalid(tokenizer_.piece(id)));
        Json answer{{"tokens", tokens}, {"pieces", std::move(pieces)}};
        if (chat_ != nullptr) answer["text"] = llm::utf8_replace_invalid(rendered);
        out_.write(json_text(answer) + "\n");
        return {};
    }

    const Request &request_;
    const Tokenizer &tokenizer_;
    const ChatTemplate *chat_;
    Output &out_;
    size_t lost_bytes_ = 0;
};

Status answer_all(std::string_view input, Tokenize &tokenize) {
    for (size_t index = 0; !input.empty(); ++index) {
        const size_t end = std::min(input.find('\0'), input.size());
        Status status = tokenize.answer(input.substr(0, end));
        if (!status.ok()) return std::move(status).in(fmt::format("text {}", index));
        input.remove_prefix(std::min(end + 1, input.size()));
    }
    return {};
}

Status run_request(const Request &request, Output &out) {
    TENON_ASSIGN(const std::shared_ptr<const llm::Gguf> file, llm::Gguf::open(request.model));
    TENON_ASSIGN(const std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::from_gguf(file));
    std::optional<ChatTemplate> chat;
    if (request.chat) {
        TENON_ASSIGN(chat, ChatTemplate::from_gguf(*file));
        if (!chat) {
            return Status::unsupported(
                fmt::format("{}: tokenizer.chat_template: missing: a base model has no chat format",
                            llm::escaped(request.model, 4096)));
        }
    }
    Tokenize tokenize(request, *tokenizer, chat ? &*chat : nullptr, out);
    if (request.decode && *request.decode != "-") return tokenize.answer(*request.decode);
    TENON_ASSIGN(const std::string input, read_text(request.source));
    TENON_TRY(request.batch ? answer_all(input, tokenize) : tokenize.answer(input));
    if (tokenize.lost_bytes() > 0) {
        fmt::print(stderr, "tenon tokenize: note: {} byte{} of the text {} no token in this vocabulary, left out\n",
                   tokenize.lost_bytes(), tokenize.lost_bytes() == 1 ? "" : "s",
                   tokenize.lost_bytes() == 1 ? "has" : "have");
    }
    return {};
}

int run(std::span<const std::string> args) {
    Request request;
    Options options(
        "tokenize", "Shows the tokens of a text, or the text of tokens",
        "The text is taken as it is: no chat template (but see --chat), a final line feed counts. Names of "
        "special tokens in it, such as <|im_start|>, are those tokens; a BOS is added only where the model's "
        "file says so. Without --json each line is a token's id and text, with escapes for what can't be "
        "shown; in JSON, bytes that aren't UTF-8 on their own are U+FFFD.");
    options.positional("MODEL", "GGUF file", request.model);
    add_text_options(options, request.source);
    options.flag("json", "print one JSON object: {\"tokens\": [...], \"pieces\": [...]}", request.json)
        .text("decode", "IDS", "print the text of these ids (parted by commas or spaces); '-': of those in the text",
              request.decode)
        .flag("chat", "the text is a JSON array of messages; put it through the model's chat template first",
              request.chat)
        .flag("batch", "with --json: many texts, each ended by a NUL byte; one object a line", request.batch)
        .exclusive({"decode", "chat"});
    if (auto exit_code = options.parse(args)) return *exit_code;
    if (request.batch && !request.json) return usage_error("tokenize", "--batch needs --json");
    const bool has_text = request.source.prompt || request.source.file || request.batch;
    if (request.decode && *request.decode != "-" && has_text) {
        return usage_error("tokenize", "--decode IDS takes no text; '--decode -' reads the ids from it");
    }
    Output out("tokenize");
    if (const Status status = run_request(request, out); !status.ok()) {
        const int exit_code = fail("tokenize", status);
        return out.finish(exit_code);
    }
    return out.finish();
}

}  // namespace

extern const Command command_tokenize;
const Command command_tokenize{"tokenize", "show the tokens of a text, or the text of tokens", run};

}  // namespace tenon::cmd
