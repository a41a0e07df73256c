#include "llm/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "llm/gguf_text.h"

namespace tenon::llm {

namespace {

constexpr std::string_view k_start = "<|im_start|>", k_end = "<|im_end|>";
constexpr std::string_view k_jinja_spaces = " \t\n\r\f\v";

/// A part of a Jinja program (https://jinja.palletsprojects.com/templates): text that is printed as it stands, an
/// expression {{ }} or a statement {% %}.
struct Part {
    enum Kind { data, expression, statement };
    Kind kind = data;
    std::string code;                   // data: the text; else what stands between the string literals, trimmed
    std::vector<std::string> literals;  // string literals, escapes resolved; data: the text again
};

void append_utf8(uint32_t point, std::string &out) {
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else if (point < 0x800) {
        out += static_cast<char>(0xC0 | point >> 6);
        out += static_cast<char>(0x80 | (point & 0x3F));
    } else {
        if (point >= 0x10000) {
            out += static_cast<char>(0xF0 | (point >> 18 & 0x07));
            out += static_cast<char>(0x80 | (point >> 12 & 0x3F));
        } else {
            out += static_cast<char>(0xE0 | point >> 12);
        }
        out += static_cast<char>(0x80 | (point >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (point & 0x3F));
    }
}

/// Reads `digits` hexadecimal digits at `at`; -1 if they aren't there.
int64_t read_hex(std::string_view text, size_t at, size_t digits) {
    if (at + digits > text.size()) return -1;
    int64_t value = 0;
    for (char c : text.substr(at, digits)) {
        const int digit = c >= '0' && c <= '9'                     ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                   : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/// The literal that opens at `*at` (a quote); `*at` is moved behind it. Escapes are Python's.
std::string read_literal(std::string_view text, size_t *at) {
    const char quote = text[(*at)++];
    std::string out;
    while (*at < text.size() && text[*at] != quote) {
        const char c = text[(*at)++];
        if (c != '\\' || *at == text.size()) {
            out += c;
            continue;
        }
        const char escaped = text[(*at)++];
        const size_t digits = escaped == 'x' ? 2 : escaped == 'u' ? 4 : escaped == 'U' ? 8 : 0;
        const int64_t point = digits > 0 ? read_hex(text, *at, digits) : -1;
        if (point >= 0) {
            append_utf8(static_cast<uint32_t>(point), out);
            *at += digits;
        } else if (const size_t which = std::string_view("ntrfvab0").find(escaped); which != std::string_view::npos) {
            out += std::string_view("\n\t\r\f\v\a\b\0", 8)[which];
        } else {
            if (escaped != '\\' && escaped != '\'' && escaped != '"') out += '\\';
            out += escaped;
        }
    }
    if (*at < text.size()) ++*at;
    return out;
}

/// Without white space at both ends, as Python's strip() sees it.
std::string_view strip(std::string_view text) {
    constexpr std::string_view wide[] = {"\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
                                         "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A",
                                         "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
    const auto ascii = [](char c) { return (c >= '\t' && c <= '\r') || (c >= '\x1C' && c <= ' '); };
    for (size_t before = text.size() + 1; before != text.size();) {
        before = text.size();
        while (!text.empty() && ascii(text.front())) text.remove_prefix(1);
        while (!text.empty() && ascii(text.back())) text.remove_suffix(1);
        for (std::string_view space : wide) {
            if (text.starts_with(space)) text.remove_prefix(space.size());
            if (text.ends_with(space)) text.remove_suffix(space.size());
        }
    }
    return text;
}

std::string_view trim(std::string_view text) {
    const size_t first = text.find_first_not_of(k_jinja_spaces);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(k_jinja_spaces) - first + 1);
}

/// Reads {{ }} or {% %} from behind its opening to its end, which string literals may not hide.
Part read_tag(std::string_view source, size_t *at, Part::Kind kind) {
    const std::string_view close = kind == Part::expression ? "}}" : "%}";
    Part part{kind, {}, {}};
    while (*at < source.size()) {
        if (source.substr(*at, 2) == close) break;
        if (source[*at] == '\'' || source[*at] == '"') {
            part.literals.push_back(read_literal(source, at));
            part.code += '\x01';  // stands for a literal
        } else {
            part.code += source[(*at)++];
        }
    }
    *at = std::min(*at + 2, source.size());
    std::string_view code = part.code;
    if (code.starts_with('-') || code.starts_with('+')) code.remove_prefix(1);
    if (code.ends_with('-') || code.ends_with('+')) code.remove_suffix(1);
    part.code = std::string(trim(code));
    return part;
}

std::vector<Part> read_parts(std::string_view source) {
    std::vector<Part> parts;
    size_t at = 0;
    while (at < source.size()) {
        const size_t brace = source.find('{', at);
        const std::string_view open = brace == std::string_view::npos ? "" : source.substr(brace, 2);
        if (open == "{{" || open == "{%") {
            if (brace > at) parts.push_back({Part::data, std::string(source.substr(at, brace - at)), {}});
            at = brace + 2;
            parts.push_back(read_tag(source, &at, open == "{{" ? Part::expression : Part::statement));
        } else if (open == "{#") {
            const size_t end = source.find("#}", brace + 2);
            if (brace > at) parts.push_back({Part::data, std::string(source.substr(at, brace - at)), {}});
            at = end == std::string_view::npos ? source.size() : end + 2;
        } else {
            const size_t end = brace == std::string_view::npos ? source.size() : brace + 1;
            parts.push_back({Part::data, std::string(source.substr(at, end - at)), {}});
            at = end;
        }
    }
    for (Part &part : parts) {
        if (part.kind == Part::data) part.literals = {part.code};
    }
    return parts;
}

std::string joined_literals(const Part &part) {
    std::string all;
    for (const std::string &literal : part.literals) all += literal;
    return all;
}

bool contains(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
}

/// Whether each printed turn opens as ChatML does: "<|im_start|>ROLE\n", the role written out or an expression.
bool opens_as_chatml(const std::vector<Part> &parts) {
    bool any = false;
    for (size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].kind == Part::statement) continue;
        const std::string text = joined_literals(parts[p]);
        for (size_t at = text.find(k_start); at != std::string::npos; at = text.find(k_start, at + 1)) {
            any = true;
            size_t next = at + k_start.size();
            while (next < text.size() && ((text[next] | 0x20) >= 'a' && (text[next] | 0x20) <= 'z')) ++next;
            // At the part's end the role, or the line end behind it, comes from the parts that follow.
            if (next < text.size() && text[next] != '\n') return false;
        }
    }
    return any;
}

/// The content of the system message that a template prints without being given one.
std::optional<std::string> find_default_system(const std::vector<Part> &parts) {
    const std::string opening = std::string(k_start) + "system\n";
    for (const Part &part : parts) {
        if (part.kind == Part::statement) {
            // {% set system_message = 'You are a helpful assistant.' %}
            const size_t equals = part.code.find('=');
            if (!part.code.starts_with("set ") || equals == std::string::npos || part.literals.size() != 1) continue;
            if (!contains(part.code.substr(0, equals), "system")) continue;
            if (trim(std::string_view(part.code).substr(equals + 1)) != "\x01") continue;
            if (!trim(part.literals[0]).empty()) return part.literals[0];
            continue;
        }
        for (const std::string &literal : part.literals) {
            const size_t begin = literal.find(opening);
            if (begin == std::string::npos) continue;
            const size_t content = begin + opening.size(), end = literal.find(k_end, content);
            if (end != std::string::npos && end > content) return literal.substr(content, end - content);
        }
    }
    return std::nullopt;
}

/// What follows {% if add_generation_prompt %}.
std::string find_generation_prompt(const std::vector<Part> &parts) {
    bool asked = false;
    for (const Part &part : parts) {
        if (part.kind == Part::statement) {
            if (part.code.starts_with("if") && contains(part.code, "add_generation_prompt")) asked = true;
        } else if (asked) {
            const std::string text = joined_literals(part);
            if (const size_t at = text.find(k_start); at != std::string::npos) return text.substr(at);
        }
    }
    return std::string(k_start) + "assistant\n";  // the family's usual, since a model must be told to answer
}

/// "<|im_end|>" with the line end that the template prints behind it.
std::string find_message_end(const std::vector<Part> &parts) {
    const std::string with_line = std::string(k_end) + "\n";
    for (size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].kind == Part::statement) continue;
        std::string text = joined_literals(parts[p]);
        if (text.ends_with(k_end) && p + 1 < parts.size() && parts[p + 1].kind != Part::statement) {
            text += joined_literals(parts[p + 1]);
        }
        if (contains(text, with_line)) return with_line;
    }
    return std::string(k_end);
}

/// Whether an expression prints a message's content without white space at its ends: message['content'] | trim.
bool trims_content(const Part &part) {
    bool content = contains(part.code, "content");
    for (const std::string &literal : part.literals) content |= literal == "content";
    std::string code = part.code;
    std::erase_if(code, [](char c) { return contains(k_jinja_spaces, std::string_view(&c, 1)); });
    return content && (contains(code, "|trim") || contains(code, ".strip()"));
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string_view bos) {
    const std::vector<Part> parts = read_parts(source);
    bool has_end = false, in_messages = false;
    for (const Part &part : parts) has_end |= part.kind != Part::statement && contains(joined_literals(part), k_end);
    if (!has_end || !opens_as_chatml(parts)) {
        return Status::unsupported(
            "this chat template isn't of the ChatML family (<|im_start|> ... <|im_end|>), the only one that Tenon "
            "knows; "
            "--raw gives the prompt to the model as it is");
    }
    ChatTemplate out;
    for (const Part &part : parts) {
        in_messages |= part.kind == Part::statement && part.code.starts_with("for ");
        if (part.kind != Part::expression) continue;
        if (!in_messages && contains(part.code, "bos_token")) out.bos_ = bos;
        out.trims_ |= trims_content(part);
    }
    const std::optional<std::string> system = find_default_system(parts);
    out.has_default_system_ = system.has_value();
    out.default_system_ = system.value_or("");
    out.message_end_ = find_message_end(parts);
    out.generation_prompt_ = find_generation_prompt(parts);
    return out;
}

Result<std::optional<ChatTemplate>> ChatTemplate::from_gguf(const Gguf &file) {
    constexpr std::string_view key = "tokenizer.chat_template";
    TENON_ASSIGN(const auto source, file.get_string(key));
    if (!source || trim(*source).empty()) return std::optional<ChatTemplate>();
    TENON_ASSIGN(const auto bos_id, file.get_uint("tokenizer.ggml.bos_token_id"));
    TENON_ASSIGN(const auto tokens, file.get_strings("tokenizer.ggml.tokens"));
    const bool has_bos = bos_id && tokens && *bos_id < tokens->size();
    Result<ChatTemplate> parsed = parse(*source, has_bos ? (*tokens)[*bos_id] : std::string_view());
    if (!parsed.ok())
        return std::move(parsed).status().in(fmt::format("{}: {}", escaped(file.path().native(), 4096), key));
    return std::optional<ChatTemplate>(*std::move(parsed));
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
    std::string out = bos_;
    const auto add = [&](std::string_view role, std::string_view content) {
        out += k_start;
        out += role;
        out += '\n';
        out += content;
        out += message_end_;
    };
    if (has_default_system_ && !messages.empty() && messages[0].role != "system") add("system", default_system_);
    for (const ChatMessage &message : messages) add(message.role, trims_ ? strip(message.content) : message.content);
    if (add_generation_prompt) out += generation_prompt_;
    return out;
}

}  // namespace tenon::llm
