"""A program that defers one job with the decorator and ends: its connection lives for a few milliseconds."""

import sys

import mail

print(mail.letter.delay(sys.argv[1], sys.argv[2]))
