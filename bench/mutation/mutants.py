"""Changes of C++ sources by machine, all compiled in at once behind a switch.

`mutate` finds in the bodies of functions what can be changed without knowing what it means, and
writes the source with every change beside the original: `a < b` becomes
`(::graphproof::mutant(7) ? (a <= b) : (a < b))`, so that one build holds all changes and a variable
of the environment picks one (mutant.h). The method is known as mutant schemata (Untch, Offutt and
Harrold, Mutation Analysis Using Mutant Schemata, ISSTA 1993); the kinds are those of Mull and of
Offutt's sufficient set, without what a compiler would refuse anyway.

Beside the changes, a block of code can say that it was entered, which tells whoever chooses cases
what they run through.

The parser knows grammar and no types, so some changes do not compile. Whoever builds takes these
out again by the lines of the compiler's errors: `mutate` keeps every line where it was.
"""
import dataclasses
import pathlib
import re

# The versions that the set-up installs for the test of this file.
TREE_SITTER, TREE_SITTER_CPP = "0.26.1", "0.23.4"

SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
           "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "+", "/": "*", "%": "*"}
# What is no code that runs in a step: it is decided while compiling, or it words an error.
UNTOUCHED = {"template_argument_list", "static_assert_declaration", "throw_statement", "decltype",
             "attribute_declaration", "requires_clause", "preproc_def", "preproc_function_def",
             "parameter_list", "type_descriptor", "sizeof_expression", "enumerator_list",
             "concatenated_string", "array_declarator", "noexcept"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A change. `line` and `last_line` from 1, `column` from 1 in bytes. `before` and `after` are
    the changed expression or statement in one line, and `text` is the whole first line, without its
    margin. Two mutants of a tree differ in (file, line, column, kind)."""
    file: str
    line: int
    column: int
    last_line: int
    kind: str  # operator, condition, constant or statement
    before: str
    after: str
    text: str


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code that says when it is entered. `function` is the name of the function whose
    body it is, or empty."""
    file: str
    line: int
    column: int
    last_line: int  # `line`: what does not compile there is the call, which stands at the brace
    function: str


def is_row(mutant, row):
    """Whether a row of survivors.json means this mutant. A row names no line number, so that it
    holds when other lines move; it means all changes of a file that look the same."""
    return all(getattr(mutant, key) == row[key]
               for key in ("file", "text", "kind", "before", "after"))


def _one_line(text):
    return " ".join(text.decode().split())


def _name_of(function):
    """The name of a function, or empty for what is none or has none."""
    declarator = function.child_by_field_name("declarator")
    if function.type != "function_definition":
        return ""
    while declarator is not None and declarator.type not in ("identifier", "field_identifier"):
        declarator = (declarator.child_by_field_name("declarator") or
                      declarator.child_by_field_name("name") or
                      next(iter(declarator.named_children), None)
                      if declarator.type in ("reference_declarator", "pointer_declarator",
                                             "function_declarator", "qualified_identifier",
                                             "template_function") else None)
    return "" if declarator is None else declarator.text.decode()


class _Writer:
    def __init__(self, file, source, number):
        self.file, self.source, self.number = file, source, number
        self.lines = source.split(b"\n")
        self.found = []  # (number or None, Mutant)
        self.blocks = []  # (number or None, Block)
        self.constant = False  # whether this is inside a function that may run while compiling

    def _switch(self, node, kind, before, after):
        """The call that asks whether this change is active, or None where it is not built."""
        mutant = Mutant(self.file, node.start_point[0] + 1, node.start_point[1] + 1,
                        node.end_point[0] + 1, kind, _one_line(before), _one_line(after),
                        self.lines[node.start_point[0]].decode().strip())
        number = self.number(mutant)
        self.found.append((number, mutant))
        return None if number is None else b"::graphproof::mutant(%d)" % number

    def _text(self, node):
        return self.source[node.start_byte:node.end_byte]

    def _children(self, node, inside):
        """The text of `node` with its children written anew."""
        out, at = [], node.start_byte
        for child in node.children:
            out += [self.source[at:child.start_byte], self.write(child, inside)]
            at = child.end_byte
        return b"".join(out + [self.source[at:node.end_byte]])

    def write(self, node, inside):
        """The text of `node`, with every change in the bodies of functions behind its switch."""
        if node.type in UNTOUCHED or not node.children and node.type not in (
                "number_literal", "true", "false"):
            return self._text(node)
        if node.type == "function_definition" or node.type == "lambda_expression":
            body = node.child_by_field_name("body")
            if body is None:
                return self._text(node)
            # Default arguments, captures and member initializers stay as they are.
            head = self.source[node.start_byte:body.start_byte]
            outside, self.constant = self.constant, self.constant or b"constexpr" in head
            written = head + self.write(body, True)
            self.constant = outside
            return written
        if not inside:
            return self._children(node, False)
        change = getattr(self, "_" + node.type, None)
        return change(node) if change else self._children(node, True)

    def _compound_statement(self, node):
        written = self._children(node, True)
        if node.parent.type == "switch_statement" or self.constant:
            return written
        block = Block(self.file, node.start_point[0] + 1, node.start_point[1] + 1,
                      node.start_point[0] + 1, _name_of(node.parent))
        number = self.number(block)
        self.blocks.append((number, block))
        return written if number is None else b"{ ::graphproof::mutant(%d);" % number + written[1:]

    def _binary_expression(self, node):
        left, operator, right = (node.child_by_field_name(name)
                                 for name in ("left", "operator", "right"))
        other = SWAPPED.get(self._text(operator).decode())
        if other is None:
            return self._children(node, True)
        # Inside an active change nothing else is active, so it needs no switches.
        after = (self.source[node.start_byte:operator.start_byte] + other.encode() +
                 self.source[operator.end_byte:node.end_byte])
        switch = self._switch(node, "operator", self._text(node), after)
        written = self._children(node, True)
        if switch is None:
            return written
        # The change comes first in one line, so that the original keeps its lines.
        return b"(%s ? (%s) : (%s))" % (switch, after.replace(b"\n", b" "), written)

    def _condition_clause(self, node):
        value = node.child_by_field_name("value")
        if (node.parent.type != "if_statement" or value is None or node.named_child_count != 1 or
                self.source[node.parent.start_byte:node.start_byte].strip() != b"if" or
                value.type in ("binary_expression", "condition_declaration", "declaration")):
            return self._children(node, True)
        text = self._text(value)
        switch = self._switch(value, "condition", text, b"!(%s)" % text)
        written = self.write(value, True)
        return b"(%s)" % written if switch is None else \
            b"(%s != static_cast<bool>(%s))" % (switch, written)

    def _expression_statement(self, node):
        if node.parent.type not in ("compound_statement", "if_statement", "else_clause",
                                    "for_statement", "for_range_loop", "case_statement"):
            return self._children(node, True)
        switch = self._switch(node, "statement", self._text(node), b"")
        written = self._children(node, True)
        return written if switch is None else b"{ if (!%s) { %s } }" % (switch, written)

    def _constant(self, node, after):
        switch = self._switch(node, "constant", self._text(node), after)
        return self._text(node) if switch is None else \
            b"(%s ? %s : %s)" % (switch, after, self._text(node))

    def _number_literal(self, node):
        text = self._text(node)
        if not text.isdigit() or node.parent.type in ("case_statement", "bitfield_clause",
                                                      "subscript_argument_list"):
            return text
        return self._constant(node, b"%d" % (int(text) + 1))

    def _true(self, node):
        return self._constant(node, b"false")

    def _false(self, node):
        return self._constant(node, b"true")

    def _behind(self, node, head):
        """The text of `node`, unchanged up to the end of its child `head`."""
        out, at = [self.source[node.start_byte:head.end_byte]], head.end_byte
        for child in node.children:
            if child.start_byte >= at:
                out += [self.source[at:child.start_byte], self.write(child, True)]
                at = child.end_byte
        return b"".join(out + [self.source[at:node.end_byte]])

    def _case_statement(self, node):
        label = node.child_by_field_name("value")
        return self._behind(node, label) if label else self._children(node, True)

    def _if_statement(self, node):
        if self._text(node).startswith((b"if constexpr", b"if consteval")):
            return self._behind(node, node.child_by_field_name("condition"))
        return self._children(node, True)

    def _declaration(self, node):
        # What is decided while compiling.
        if b"constexpr" in self._text(node).split(b"=", 1)[0]:
            return self._text(node)
        return self._children(node, True)


def mutate(file, source, number):
    """Returns the text of `source` with its changes built in, [(number, Mutant)] and
    [(number, Block)].

    `source` is bytes, `file` names it in its mutants. number(what) gives the number of a mutant or
    of a block, or None for one that is not built; it is still in the list. The result begins with a
    line that includes mutant.h, and numbers its lines as the source does."""
    import tree_sitter
    import tree_sitter_cpp
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
    writer = _Writer(file, source, number)
    written = writer.write(parser.parse(source).root_node, False)
    return b'#include "bench/mutation/mutant.h"\n#line 1\n' + written, writer.found, writer.blocks


def marked(source):
    """The text of the source of a program whose `main` says that it has begun (mutant.h)."""
    text, places = re.subn(rb"^(int main\(.*?\) \{)", rb"\1 ::graphproof::main_has_begun() = true;",
                           source, flags=re.M)
    if places != 1:
        raise ValueError("a program has one function main")
    return b'#include "bench/mutation/mutant.h"\n#line 1\n' + text


def sources(root, folders):
    """The sources below `folders` that run in a case, as paths relative to `root`, sorted: no
    tests, and no switches of planted faults, which nothing sets."""
    found = []
    for folder in folders:
        for path in sorted(pathlib.Path(root, folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".cpp", ".h") and not path.stem.endswith("_test") and not (
                    {"testing", "faults", "speed"} & set(path.parts)):
                found.append(name)
    return found
