"""What recurrent layers ask of a backend."""


def cudnn_ok(*args, **kwargs):
    """Whether there are fused kernels: there are none."""
    return False


def rnn(*args, **kwargs):
    raise NotImplementedError


def lstm(*args, **kwargs):
    raise NotImplementedError


def gru(*args, **kwargs):
    raise NotImplementedError


def bidirectional_lstm(*args, **kwargs):
    raise NotImplementedError


def bidirectional_gru(*args, **kwargs):
    raise NotImplementedError
