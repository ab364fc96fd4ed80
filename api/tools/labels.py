"""What the tags around calls are called: a name tells a reader of the answer what a tag is.

`message`                   stands before a piece of the content, which is a paragraph of its own
`content`                   all inside of it is a piece of the content, whatever tags it holds
`group`                     stands around calls and is no part of the answer
`call:<tool>`               its content is the JSON text of the arguments
`headed call:<tool>`        a tag `arguments` with that text follows inside, maybe after a tag `call id`
`identified call:<tool>`    the same; its own text up to there is the id of the call
`named call:<tool>`         holds a tag for each argument, see `grammar.structural_tag.parameter_styles`
`gemma call:<tool>`, `functiongemma call:<tool>`    their content is the arguments as `grammar.structural_tag.bare_values` has them
`constant:<word>`           inside of an argument: another spelling of `true`, `false` or `null`
"""

from __future__ import annotations

from ...grammar.structural_tag.bare_values import BARE_STYLES
from ...grammar.structural_tag.parameter_styles import ARGUMENT, CONSTANT, PADDED_ARGUMENT, TEXT_ARGUMENT

CALL = "call:"
HEADED_CALL = "headed call:"
IDENTIFIED_CALL = "identified call:"
NAMED_CALL = "named call:"
BARE_CALLS = {f"{style} call:": style for style in BARE_STYLES}
ARGUMENTS = "arguments"
CALL_ID = "call id"
CONTENT = "content"
GROUP = "group"
MESSAGE = "message"

__all__ = [
    "ARGUMENT",
    "ARGUMENTS",
    "BARE_CALLS",
    "CALL",
    "CALL_ID",
    "CONSTANT",
    "CONTENT",
    "GROUP",
    "HEADED_CALL",
    "IDENTIFIED_CALL",
    "MESSAGE",
    "NAMED_CALL",
    "PADDED_ARGUMENT",
    "TEXT_ARGUMENT",
]
