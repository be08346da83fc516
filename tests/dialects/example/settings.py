"""The settings of lines."""

from dragoman.dialects.setting import DialectSetting


class LinesSettings:
    def __init__(self) -> None:
        self.queues_max = 100


DEFAULTS = LinesSettings()
SETTINGS = [DialectSetting("queues_max", "Queues that one worker may serve.", least=1, most=1000)]
