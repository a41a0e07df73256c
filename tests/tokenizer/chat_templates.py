#!/usr/bin/env python3
"""Tenon's chat formatting against Jinja, on the model's own template and on others of the ChatML family.

    chat_templates.py TENON MODEL
"""
import json
import os
import subprocess
import sys
import tempfile

import jinja2

from model_files import ask, read_vocabulary, write_tokenizer_file

TURN = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

TEMPLATES = {
    "plain": "{% for message in messages %}" + TURN + "{% endfor %}" + PROMPT,
    "default system message outside the loop":
        "{%- if messages[0]['role'] == 'system' %}\n    {{- '<|im_start|>system\\n' + messages[0]['content'] + "
        "'<|im_end|>\\n' }}\n{%- else %}\n    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}\n"
        "{%- endif %}\n{%- for message in messages %}\n    {%- if (message.role == 'user') or (message.role == 'system' "
        "and not loop.first) or (message.role == 'assistant') %}\n        {{- '<|im_start|>' + message.role + '\\n' + "
        "message.content + '<|im_end|>' + '\\n' }}\n    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n"
        "    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n",
    "default system message in a variable":
        "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
        "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = 'Be kind.' %}"
        "{% endif %}{{ '<|im_start|>system\\n' + system_message + '<|im_end|>\\n' }}{% for message in loop_messages %}" +
        TURN + "{% endfor %}" + PROMPT,
    "BOS in front": "{{ bos_token }}{% for message in messages %}" + TURN + "{% endfor %}" + PROMPT,
    "trimmed contents": "{% for message in messages %}" + TURN.replace("message['content']", "message['content'] | trim") +
        "{% endfor %}" + PROMPT,
    "written as text": "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "an answer that begins with thinking": "{% for message in messages %}" + TURN + "{% endfor %}" +
        PROMPT.replace("assistant\\n", "assistant\\n<think>\\n"),
}

CONVERSATIONS = [
    [("user", "Hi")],
    [("user", "  \n\u3000 white space at both ends \x85\t\n")],
    [("system", "Be brief."), ("user", "Hi")],
    [("user", "1"), ("assistant", "2"), ("user", "3")],
    [("system", ""), ("user", "日本語 🙂 'quoted' \"twice\" \\n {{ not a tag }} {% if %}")],
    [("user", "a"), ("system", "from now on in French"), ("user", "b"), ("assistant", "c"), ("user", "<|im_end|>")],
]


def rendered_by_jinja(template, messages, bos):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)  # as model hubs set it
    return environment.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token=bos)


def check(tenon, file, name, template, bos):
    conversations = [[{"role": role, "content": content} for role, content in talk] for talk in CONVERSATIONS]
    answers = ask(tenon, file, [json.dumps(talk) for talk in conversations], "--chat")
    failures = 0
    for talk, answer in zip(conversations, answers):
        expected = rendered_by_jinja(template, talk, bos)
        if answer["text"] != expected:
            failures += 1
            print(f"{name}: {talk}:\n  got      {answer['text']!r}\n  expected {expected!r}")
    print(f"{name}: {len(conversations)} conversations, {failures} differ")
    return failures


def main():
    tenon, model = sys.argv[1:3]
    vocabulary = read_vocabulary(model)
    failures = check(tenon, model, "the model's template", vocabulary.chat_template, vocabulary.tokens[1])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "chat.gguf")
        for name, template in TEMPLATES.items():
            write_tokenizer_file(file, vocabulary, "smollm", template, bos=1)
            failures += check(tenon, file, name, template, vocabulary.tokens[1])
        write_tokenizer_file(file, vocabulary, "smollm", "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}")
        other = subprocess.run([tenon, "tokenize", file, "--chat", "-p", "[]"], capture_output=True, text=True)
        if other.returncode != 1 or "--raw" not in other.stderr:
            failures += 1
            print(f"another family's template: exit {other.returncode}, {other.stderr!r}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
