from retrograde.quantization.fake_quantization import (
    fake_quant_with_min_max_args as fake_quant_with_min_max_args,
)
from retrograde.quantization.fake_quantization import (
    fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
)
from retrograde.quantization.fake_quantization import (
    fake_quant_with_min_max_vars as fake_quant_with_min_max_vars,
)
from retrograde.quantization.fake_quantization import (
    fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
)
from retrograde.quantization.fake_quantization import (
    fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
)
from retrograde.quantization.fake_quantization import (
    fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,
)
from retrograde.quantization.fake_quantization import (
    quantize_and_dequantize as quantize_and_dequantize,
)
from retrograde.quantization.fake_quantization import (
    quantize_and_dequantize_v2 as quantize_and_dequantize_v2,
)
