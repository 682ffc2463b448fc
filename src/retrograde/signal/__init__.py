"""tf.signal: transforms, frames, windows and spectra. `name` is accepted and ignored."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.signal.cosine import dct, idct, inverse_mdct, mdct
    from retrograde.signal.fourier import (
        fft,
        fft2d,
        fft3d,
        fftnd,
        fftshift,
        ifft,
        ifft2d,
        ifft3d,
        ifftnd,
        ifftshift,
        irfft,
        irfft2d,
        irfft3d,
        irfftnd,
        rfft,
        rfft2d,
        rfft3d,
        rfftnd,
    )
    from retrograde.signal.framing import frame, overlap_and_add
    from retrograde.signal.mel import linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms
    from retrograde.signal.spectral import inverse_stft, inverse_stft_window_fn, stft
    from retrograde.signal.windows import (
        hamming_window,
        hann_window,
        kaiser_bessel_derived_window,
        kaiser_window,
        vorbis_window,
    )

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftnd",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftnd",
    "ifftshift",
    "inverse_mdct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "irfft3d",
    "irfftnd",
    "kaiser_bessel_derived_window",
    "kaiser_window",
    "linear_to_mel_weight_matrix",
    "mdct",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "rfft3d",
    "rfftnd",
    "stft",
    "vorbis_window",
]
