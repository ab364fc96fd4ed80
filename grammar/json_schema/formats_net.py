"""Hosts, addresses, mailboxes and identifiers: RFC 1123, 2673, 4291, 5321, 6531, 3986, 3987, 6570, 6901.

Everything is pattern text of the ECMA dialect, meant for a match of the whole string.
"""

from __future__ import annotations

from ..languages import MAX_CODE_POINT
from ..regex import Language
from .formats_idna import idn_domain

_MAX_DOMAIN = 255
_MAX_LOCAL_PART = 64

# RFC 952 and 1123: letters, digits and inner hyphens, up to 63 characters.
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"

_GROUP = "[0-9A-Fa-f]{1,4}"


def _ipv6() -> str:
    """RFC 4291, section 2.2: eight groups, of which `::` leaves out at least one, the last two perhaps dotted."""
    tail = rf"(?:{_GROUP}:{_GROUP}|{IPV4})"
    forms = [rf"(?:{_GROUP}:){{6}}{tail}"]
    for behind in range(6):
        left = rf"(?:{_GROUP}(?::{_GROUP}){{0,{5 - behind - 1}}})?" if behind < 5 else ""
        forms.append(rf"{left}::(?:{_GROUP}:){{{behind}}}{tail}")
    forms.append(rf"(?:{_GROUP}(?::{_GROUP}){{0,5}})?::{_GROUP}")
    forms.append(rf"(?:{_GROUP}(?::{_GROUP}){{0,6}})?::")
    return "(?:" + "|".join(forms) + ")"


IPV6 = _ipv6()

# RFC 5321, section 4.1.2. Domains are those of DNS, so that a label has at most 63 characters.
_ATEXT = "A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-"

# RFC 3987, section 2.2.
_UCSCHAR_PLANES = "".join(rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14))
UCSCHAR = rf"\u{{A0}}-\u{{D7FF}}\u{{F900}}-\u{{FDCF}}\u{{FDF0}}-\u{{FFEF}}{_UCSCHAR_PLANES}\u{{E1000}}-\u{{EFFFD}}"
IPRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
_PERCENT = "%[0-9A-Fa-f]{2}"


def email() -> Language:
    """`Mailbox` of RFC 5321 with a local part of up to 64 octets and a domain of up to 255."""
    local_part = Language.pattern(_local_part("")) & Language.length(1, _MAX_LOCAL_PART)
    return local_part.concat(Language.literal("@"), _mail_domain())


def idn_email() -> Language:
    """`Mailbox` of RFC 6531: beyond ASCII on both sides.

    The 64 octets of the local part are counted as if all its characters were as wide as its widest one.
    """
    widths = ((64, 0x7F), (32, 0x7FF), (21, 0xFFFF), (16, MAX_CODE_POINT))
    short_enough = Language.union(Language.chars([(0, last)]).repeat(1, count) for count, last in widths)
    local_part = Language.pattern(_local_part(r"\u{80}-\u{10FFFF}")) & short_enough
    return local_part.concat(Language.literal("@"), _mail_domain() | idn_domain("."))


def _local_part(beyond_ascii: str) -> str:
    atom = rf"[{_ATEXT}{beyond_ascii}]+"
    quoted = rf'"(?:[\x20\x21\x23-\x5B\x5D-\x7E{beyond_ascii}]|\\[\x20-\x7E])*"'
    return rf"{atom}(?:\.{atom})*|{quoted}"


def _mail_domain() -> Language:
    return Language.pattern(rf"{LABEL}(?:\.{LABEL})*|\[(?:{IPV4}|IPv6:{IPV6})\]") & Language.length(1, _MAX_DOMAIN)


def resource_identifier(*, reference: bool, beyond_ascii: str = "", private: str = "") -> Language:
    """RFC 3986, appendix A, or RFC 3987, section 2.2 with its additional characters. `private` is for the query alone."""
    unreserved = rf"A-Za-z0-9\-._~{beyond_ascii}"
    sub_delims = "!$&'()*+,;="
    segment_char = rf"(?:[{unreserved}{sub_delims}:@]|{_PERCENT})"
    first_char = rf"(?:[{unreserved}{sub_delims}@]|{_PERCENT})"
    user_info = rf"(?:[{unreserved}{sub_delims}:]|{_PERCENT})*"
    registered_name = rf"(?:[{unreserved}{sub_delims}]|{_PERCENT})*"
    future = rf"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~{sub_delims}:]+"
    host = rf"(?:\[(?:{IPV6}|{future})\]|{registered_name})"
    authority = rf"(?:{user_info}@)?{host}(?::[0-9]*)?"
    segments = rf"(?:/{segment_char}*)*"
    rooted = rf"//{authority}{segments}|/(?:{segment_char}+{segments})?"
    query = rf"(?:\?(?:[{unreserved}{sub_delims}:@/?{private}]|{_PERCENT})*)?"
    fragment = rf"(?:#(?:[{unreserved}{sub_delims}:@/?]|{_PERCENT})*)?"
    absolute = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{rooted}|{segment_char}+{segments})?{query}{fragment}"
    if not reference:
        return Language.pattern(absolute)
    relative = rf"(?:{rooted}|{first_char}+{segments})?{query}{fragment}"
    return Language.pattern(rf"{absolute}|{relative}")


def _uri_template() -> str:
    """RFC 6570, section 2, with erratum 6937 (apostrophes are literals). Operators reserved for the future are left out."""
    literal = rf"(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{UCSCHAR}{IPRIVATE}]|{_PERCENT})"
    var_char = rf"(?:[A-Za-z0-9_]|{_PERCENT})"
    variable = rf"{var_char}+(?:\.{var_char}+)*(?:\*|:[1-9][0-9]{{0,3}})?"
    return rf"(?:{literal}|\{{[+#./;?&]?{variable}(?:,{variable})*\}})*"


URI_TEMPLATE = _uri_template()

# RFC 6901, section 3, and draft-bhutton-relative-json-pointer-00, section 3.
JSON_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
RELATIVE_JSON_POINTER = rf"(?:0|[1-9][0-9]*)(?:#|{JSON_POINTER})"

# RFC 9562, section 4 (and RFC 4122 before it): any version and variant.
UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
