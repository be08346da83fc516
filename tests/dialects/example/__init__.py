"""lines: an example of a dialect. One TCP port, text in lines; docs/howto/add-a-dialect.md explains each part.

client   PUT queue body      broker   ID id              it is kept; in the order of the PUTs
                                      OK id answer       or NO id reason; NO 0 reason if it was not accepted
worker   GET queue           broker   JOB id body        a GET is room for one message; BYE: no more
         OK id answer
"""

from dragoman.errors import PeerError

LINES = 20


class BadLine(PeerError):
    code = "BAD_LINE"


def escaped(body: bytes) -> bytes:
    return body.replace(b"%", b"%25").replace(b"\n", b"%0A")
