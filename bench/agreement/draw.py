"""Random training configurations by seed, over the options that graphproof's rules of Megatron-LM
read: a random example of a random rule, changed by a few options of the same rule and of others."""
import glob
import json
import os
import random
import re

# Options that rules read and that need a dozen others, of which no rule is about graphs.
NOT_DRAWN = {"experimental_attention_variant", "mrope_section", "pipeline_model_parallel_layout",
             "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"}
# What every training script gives; Megatron-LM refuses a command line without them.
SHAPE = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 8}
COMMAND_LINE = {"max_position_embeddings": 64, "seq_length": 64, "micro_batch_size": 1}
# What every job gives to Megatron Bridge. Whether gradients are added up in place follows otherwise
# from what is installed.
JOB = {"global_batch_size": 64, "micro_batch_size": 1, "seq_length": 64,
       "gradient_accumulation_fusion": False}
STACKS = {"torch_version": ["2.5.1", "2.6.0", "2.8.0", "2.10.0", "2.11.0"],
          "te_version": ["none", "1.4.0", "2.5.0", "2.7.0", "2.8.0", "2.9.0", "2.10.0", "2.12.0",
                         "2.14.0"],
          "sm": ["75", "80", "90", "100"], "torch_memory_saver": ["true", "false"],
          "flashinfer": ["true", "false"],
          "world_size": ["1", "2", "4", "6", "8", "16", "64"]}
ENVIRONMENT = {"CUDA_DEVICE_MAX_CONNECTIONS": ["1", "8", ""],
               "CUDA_GRAPHS_USE_NODE_PRIORITY": ["1", "0"], "NVTE_CPU_OFFLOAD_V1": ["1", "0"],
               "PYTORCH_CUDA_ALLOC_CONF": ["expandable_segments:True", "expandable_segments:False",
                                           "max_split_size_mb:64,expandable_segments:True"],
               "NCCL_GRAPH_REGISTER": ["0", "1", ""], "NCCL_PROTO": ["Simple", "LL128"],
               "NCCL_ALGO": ["Ring", "Ring,^NVLS", "Tree", "", "Ring, CollnetChain"],
               "NVTE_ALLOW_NONDETERMINISTIC_ALGO": ["0", "1"],
               "MAMBA_DETERMINISTIC": ["0", "1", ""],
               "CUBLAS_WORKSPACE_CONFIG": [":4096:8", ":16:8", ":0:0"]}


def read(path):
    """A JSON file with whole lines of // comments."""
    with open(path, encoding="utf-8") as file:
        return json.loads(re.sub(r"^\s*//.*$", "", file.read(), flags=re.M))


class Draw:
    STAGES = {"cli", "config", "construct"}
    FOLDERS = ("megatron-lm",)
    NOT_DRAWN = NOT_DRAWN

    def __init__(self, matrix, version, seed, fields):
        """`matrix`: graphproof's folder of that name. `fields`: names of TransformerConfig."""
        self.random = random.Random(seed)
        self.fields = fields
        options, self.rules, defines = {}, [], {}
        for path in self.files(matrix, "options"):
            options.update((option["name"], option) for option in read(path)["options"]
                           if version not in option.get("versions", {}).get("except", []))
        for path in self.files(matrix, "rules"):
            file = read(path)
            defines.update(file.get("define", {}))
            self.rules += [rule for rule in file["rules"] if self.STAGES & set(
                rule["stage"] if isinstance(rule["stage"], list) else [rule["stage"]])]
        self.read_by, self.values = [], {}
        for rule in self.rules:
            text = json.dumps([rule.get(key) for key in ("when", "require", "parts", "effect")])
            for _ in range(3):  # A definition may name another one.
                text += " ".join(defines[word] for word in re.findall(r"\w+", text)
                                 if word in defines)
            names = [name for name in set(re.findall(r"[a-z]\w*", text)) | {rule.get("option")}
                     if name in options and name not in self.NOT_DRAWN and
                     options[name]["where"] in ("both", "cli", "config")]
            self.read_by.append(sorted(names))
            for example in sum((rule.get("examples", {}).get(key, []) for key in
                                ("breaks", "holds")), []):
                if isinstance(example, dict) and not rule.get("read"):
                    for name, value in example.items():
                        self.values.setdefault(name, []).append(value)
        self.names = sorted({name for names in self.read_by for name in names})
        self.options = options

    def files(self, matrix, kind):
        return [path for folder in self.FOLDERS for path in
                sorted(glob.glob(os.path.join(matrix, kind, folder, "*.json")))]

    def value(self, name):
        option, pick = self.options[name], self.random.choice
        seen = [value for value in self.values.get(name, []) if value is not None]
        kind = option["type"]
        if name in SHAPE:
            return pick([1, 2, 3, 4, 6, 8, 64])
        if kind == "bool":
            return pick([True, True, False])
        if seen and self.random.random() < 0.5:
            return pick(seen)
        if kind == "list":
            words = option.get("choices") or sorted({word for value in seen if
                                                     isinstance(value, list) for word in value})
            return self.random.sample(words, min(len(words), pick([0, 1, 1, 1, 2, 3])))
        if kind == "int":
            return pick([0, 1, 1, 2, 2, 3, 4, 8, -1])
        if kind == "float":
            return pick([0.0, 0.0, 0.5, 1.0, 1.5, -1.0])
        return pick(option.get("choices") or seen or ["x"])

    def words(self, values):
        """The values as a command line, or None if one has no flag that says it."""
        line = []
        for name, value in values.items():
            option = self.options[name]
            if option["type"] == "bool":
                flags = option.get("flags" if value else "off_flags", [])
                if not flags and value != option.get("default", False):
                    return None
                line += flags[:1]
            elif value is not None and value != []:
                if not option.get("flags"):
                    return None
                if option.get("const") is not None and option.get("nargs", 0) == 0:
                    return None  # A flag without a value that stands for one.
                line.append(option["flags"][0])
                words = value if option["type"] == "list" and isinstance(value, list) else [value]
                line += [str(word).replace(", ", ",") for word in words]
        return line

    def changed_example(self):
        """The example of a rule with changes: (its options, the words of one that is a command
        line, environment, stack, whether it is of a field that cannot be read)."""
        pick, chance = self.random.choice, self.random.random
        index = self.random.randrange(len(self.rules))
        rule = self.rules[index]
        examples = rule.get("examples", {})
        example = pick(examples.get("breaks", []) * 2 + examples.get("holds", []) or [{}])
        extra = example.split() if isinstance(example, str) else []
        values = {} if isinstance(example, str) or chance() < 0.1 else dict(example)
        stack = {name: pick(choices[-3:] if chance() < 0.7 else choices)
                 for name, choices in STACKS.items()}
        environment = {name: pick(choices) for name, choices in ENVIRONMENT.items()
                       if chance() < 0.1}
        for name in list(values):
            if name.startswith("env."):
                environment[name[4:]] = values.pop(name)
            elif name in STACKS:
                value = values.pop(name)
                stack[name] = "none" if value is None else str(value).lower()
        if chance() < 0.6:
            environment.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
        # What an unreadable field of an object is taken for is not defined: it comes alone.
        alone = rule.get("read") and rule["stage"] == "config"
        for _ in range(0 if alone else pick([0, 1, 1, 2, 2, 3, 4, 6])):
            near = self.read_by[index] if chance() < 0.4 else None
            name = pick(near or self.names)
            values[name] = self.value(name)
        values = {**SHAPE, **{name: value for name, value in values.items()
                              if name in self.options and name not in self.NOT_DRAWN and
                              self.options[name]["where"] != "stack"}}
        return values, extra, environment, stack, alone

    def configuration(self):
        """{"words" or "object", "env", "stack"}."""
        while True:
            values, extra, environment, stack, alone = self.changed_example()
            pick, chance = self.random.choice, self.random.random
            if (alone or chance() < 0.3) and not extra:
                return {"object": {name: value for name, value in values.items()
                                   if name in self.fields}, "env": environment, "stack": stack}
            line = self.words({**COMMAND_LINE, **values})
            if line is None:
                continue
            if chance() < 0.03:  # An error of the parser.
                extra = extra + pick([["--cuda-graph-modul", "attn"], ["--seq-length", "x"],
                                      ["--cuda-graph-impl", "te"], ["--num-layers"]])
            return {"words": line + extra, "env": environment, "stack": stack}


class DrawBridge(Draw):
    STAGES = {"config"}
    FOLDERS = ("megatron-lm", "megatron-bridge")
    # Of data sets that read files when their configuration is made; a length that is none.
    NOT_DRAWN = NOT_DRAWN | {"packing_buffer_size", "seq_length"}

    def unknown_word(self, given):
        """A word that no version has is refused by whatever reads it first."""
        name, value = given
        choices = self.options[name].get("choices")
        return isinstance(value, str) and choices is not None and value not in choices

    def configuration(self):
        """{"object": {section: {field: value}}, "env", "stack"}. `fields` maps a name to the
        section of Bridge's configuration that has it."""
        while True:
            values, extra, environment, stack, alone = self.changed_example()
            if extra or alone or any(map(self.unknown_word, values.items())):
                continue
            sections = {}
            for name, value in {**JOB, **values}.items():
                keys = self.options[name].get("keys", [])
                path = keys[-1].split(".") if keys else [self.fields.get(name), name]
                if len(path) < 2 or path[0] is None or path[-1].startswith("_"):
                    continue  # No field of a section, or the name of a class.
                at = sections
                for section in path[:-1]:
                    at = at.setdefault(section, {})
                at[path[-1]] = value
            if sections["train"]["global_batch_size"] < 1:
                continue  # A schedule of the learning rate without a step is no rule of graphs.
            return {"object": sections, "env": environment, "stack": stack}
