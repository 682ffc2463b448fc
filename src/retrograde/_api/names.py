"""Where public names are at home. Made by `tools/make_names.py`."""

HOMES = {
    "retrograde": {
        "": """
            autodiff=retrograde.autodiff autograph=retrograde.autograph bitwise=retrograde.bitwise
            compat=retrograde.compat config=retrograde.config data=retrograde.data
            debugging=retrograde.debugging distribute=retrograde.distribute
            dtypes=retrograde.dtypes errors=retrograde.errors experimental=retrograde.experimental
            image=retrograde.image io=retrograde.io keras=retrograde.keras
            linalg=retrograde.linalg math=retrograde.math nest=retrograde.nest nn=retrograde.nn
            optimize=retrograde.optimize ragged=retrograde.ragged random=retrograde.random
            saved_model=retrograde.saved_model signal=retrograde.signal sparse=retrograde.sparse
            strings=retrograde.strings summary=retrograde.summary sysconfig=retrograde.sysconfig
            test=retrograde.test train=retrograde.train types=retrograde.types
            version=retrograde.version
        """,
        "retrograde.core.custom_gradient": """
            custom_gradient grad_pass_through recompute_grad
        """,
        "retrograde.core.indexed_slices": """
            IndexedSlices IndexedSlicesSpec
        """,
        "retrograde.core.spec": """
            TensorSpec TypeSpec
        """,
        "retrograde.core.tape": """
            GradientTape
        """,
        "retrograde.core.tape_arguments": """
            UnconnectedGradients
        """,
        "retrograde.core.tensor": """
            Tensor
        """,
        "retrograde.core.variable": """
            Variable VariableAggregation VariableSynchronization
        """,
        "retrograde.debugging": """
            Assert assert_equal assert_greater assert_less assert_rank
        """,
        "retrograde.keras": """
            initializers losses metrics optimizers
        """,
        "retrograde.linalg": """
            eig eigvals einsum matmul matrix_square_root=sqrtm norm tensordot
        """,
        "retrograde.math": """
            abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh cos cosh cumsum
            divide equal exp floor greater greater_equal less less_equal logical_and logical_not
            logical_or maximum minimum multiply negative not_equal pow reduce_all reduce_any
            reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round
            scalar_mul sigmoid sign sin sinh sqrt square subtract tan tanh truediv truncatediv
            truncatemod
        """,
        "retrograde.math.arithmetic": """
            realdiv
        """,
        "retrograde.math.counting": """
            approx_top_k histogram_fixed_width histogram_fixed_width_bins
        """,
        "retrograde.nn.blocks": """
            batch_to_space required_space_to_batch_paddings space_to_batch space_to_batch_nd
        """,
        "retrograde.nn.convolutions": """
            conv
        """,
        "retrograde.nn.depthwise": """
            conv2d_backprop_filter_v2 conv2d_backprop_input_v2
        """,
        "retrograde.nn.patches": """
            extract_volume_patches
        """,
        "retrograde.program.function": """
            function
        """,
        "retrograde.ragged.filling": """
            ragged_fill_empty_rows ragged_fill_empty_rows_grad
        """,
        "retrograde.ragged.spec": """
            RaggedTensorSpec
        """,
        "retrograde.ragged.tensor": """
            RaggedTensor
        """,
        "retrograde.random.shuffling": """
            random_index_shuffle
        """,
        "retrograde.signal.at_top_level": """
            fftnd ifftnd irfftnd rfftnd
        """,
        "retrograde.sparse.distance": """
            edit_distance
        """,
        "retrograde.sparse.tensor": """
            SparseTensor SparseTensorSpec
        """,
        "retrograde.strings.basics": """
            as_string fingerprint
        """,
        "retrograde.tensorflow_shim.finder": """
            install_as_tensorflow
        """,
        "retrograde.toplevel.clipping": """
            clip_by_global_norm clip_by_norm clip_by_value
        """,
        "retrograde.toplevel.control_flow": """
            case cond foldl foldr map_fn scan switch_case while_loop
        """,
        "retrograde.toplevel.creating": """
            constant convert_to_tensor eye fill linspace meshgrid one_hot ones ones_like range
            sequence_mask zeros zeros_like
        """,
        "retrograde.toplevel.describing": """
            broadcast_dynamic_shape broadcast_static_shape ensure_shape get_static_value is_tensor
            rank shape shape_n size type_spec_from_value
        """,
        "retrograde.toplevel.devices": """
            device
        """,
        "retrograde.toplevel.graph_gradients": """
            gradients hessians
        """,
        "retrograde.toplevel.initializers": """
            constant_initializer ones_initializer random_normal_initializer
            random_uniform_initializer zeros_initializer
        """,
        "retrograde.toplevel.module": """
            Module
        """,
        "retrograde.toplevel.pass_through": """
            guarantee_const parallel_stack tuple
        """,
        "retrograde.toplevel.picking": """
            argsort boolean_mask dynamic_partition dynamic_stitch gather gather_nd
            reverse_sequence scatter_nd searchsorted slice sort strided_slice
            tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min
            tensor_scatter_nd_sub tensor_scatter_nd_update unique unique_with_counts unravel_index
            where
        """,
        "retrograde.toplevel.printing": """
            print
        """,
        "retrograde.toplevel.python_functions": """
            numpy_function py_function
        """,
        "retrograde.toplevel.registration": """
            RegisterGradient no_gradient register_tensor_conversion_function
        """,
        "retrograde.toplevel.runtime": """
            AggregationMethod CriticalSection get_logger is_symbolic_tensor timestamp
        """,
        "retrograde.toplevel.scopes": """
            control_dependencies executing_eagerly get_current_name_scope group init_scope
            inside_function name_scope no_op variable_creator_scope
        """,
        "retrograde.toplevel.shaping": """
            bitcast broadcast_to cast complex concat expand_dims identity identity_n pad repeat
            reshape reverse roll saturate_cast split squeeze stack stop_gradient tile transpose
            unstack
        """,
        "retrograde.toplevel.tensor_array": """
            TensorArray TensorArraySpec
        """,
        "retrograde.toplevel.vectorized_map": """
            vectorized_map
        """,
        "retrograde.values.device_spec": """
            DeviceSpec
        """,
        "retrograde.values.dtypes": """
            DType as_dtype bfloat16 bool=bool_ complex128 complex64 double float16 float32 float64
            half int16 int32 int64 int8 qint16 qint32 qint8 quint16 quint8 resource string uint16
            uint32 uint64 uint8 variant
        """,
        "retrograde.values.shapes": """
            TensorShape
        """,
    },
    "retrograde.debugging": {
        "retrograde.debugging.comparisons": """
            Assert assert_equal assert_greater assert_greater_equal assert_less assert_less_equal
            assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal
            assert_positive
        """,
        "retrograde.debugging.descriptions": """
            assert_integer assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in
            assert_same_float_dtype assert_scalar assert_shapes assert_type is_numeric_tensor
        """,
        "retrograde.debugging.growth": """
            no_growth
        """,
        "retrograde.debugging.numerics": """
            assert_all_finite check_numerics disable_check_numerics enable_check_numerics
            nonfinite
        """,
        "retrograde.debugging.settings": """
            disable_traceback_filtering enable_traceback_filtering get_log_device_placement
            is_traceback_filtering_enabled record_lines set_log_device_placement
        """,
    },
    "retrograde.distribute": {
        "": """
            cluster_resolver=retrograde.distribute.cluster_resolver
        """,
        "retrograde.distribute.reducing": """
            CrossDeviceOps HierarchicalCopyAllReduce NcclAllReduce ReduceOp ReductionToOneDevice
        """,
        "retrograde.distribute.strategies": """
            InputContext MirroredStrategy OneDeviceStrategy ReplicaContext Strategy
            get_replica_context get_strategy has_strategy in_cross_replica_context
        """,
    },
    "retrograde.experimental": {
        "": """
            dlpack=retrograde.experimental.dlpack numpy=retrograde.experimental.numpy
        """,
    },
    "retrograde.image": {
        "retrograde.image.adjusting": """
            adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation
            per_image_standardization
        """,
        "retrograde.image.boxes": """
            draw_bounding_boxes sample_distorted_bounding_box
            stateless_sample_distorted_bounding_box
        """,
        "retrograde.image.codecs": """
            decode_bmp decode_gif decode_image decode_png encode_png
        """,
        "retrograde.image.colour": """
            convert_image_dtype grayscale_to_rgb hsv_to_rgb rgb_to_grayscale rgb_to_hsv rgb_to_yiq
            rgb_to_yuv yiq_to_rgb yuv_to_rgb
        """,
        "retrograde.image.cutting": """
            crop_and_resize extract_glimpse
        """,
        "retrograde.image.jpeg": """
            adjust_jpeg_quality decode_and_crop_jpeg decode_jpeg encode_jpeg extract_jpeg_shape
            is_jpeg random_jpeg_quality stateless_random_jpeg_quality
        """,
        "retrograde.image.placing": """
            central_crop crop_to_bounding_box flip_left_right flip_up_down pad_to_bounding_box
            resize_with_crop_or_pad rot90 transpose
        """,
        "retrograde.image.quality": """
            image_gradients psnr sobel_edges ssim ssim_multiscale total_variation
        """,
        "retrograde.image.resizing": """
            ResizeMethod resize resize_with_pad
        """,
        "retrograde.image.sampling": """
            random_brightness random_contrast random_crop random_flip_left_right
            random_flip_up_down random_hue random_saturation stateless_random_brightness
            stateless_random_contrast stateless_random_crop stateless_random_flip_left_right
            stateless_random_flip_up_down stateless_random_hue stateless_random_saturation
        """,
        "retrograde.image.suppression": """
            combined_non_max_suppression non_max_suppression non_max_suppression_overlaps
            non_max_suppression_padded non_max_suppression_with_scores
        """,
        "retrograde.nn.patches": """
            extract_patches
        """,
    },
    "retrograde.io": {
        "": """
            gfile=retrograde.io.gfile
        """,
        "retrograde.image.codecs": """
            decode_bmp decode_gif decode_image decode_png encode_png
        """,
        "retrograde.image.jpeg": """
            decode_and_crop_jpeg decode_jpeg encode_jpeg extract_jpeg_shape is_jpeg
        """,
        "retrograde.io.encodings": """
            decode_base64 decode_compressed decode_raw encode_base64 parse_tensor serialize_tensor
        """,
        "retrograde.io.files": """
            match_filenames_once matching_files read_file write_file
        """,
        "retrograde.io.tables": """
            decode_csv
        """,
    },
    "retrograde.linalg": {
        "": """
            experimental=retrograde.linalg.experimental
        """,
        "retrograde.linalg.banded": """
            banded_triangular_solve eigh_tridiagonal tridiagonal_matmul tridiagonal_solve
        """,
        "retrograde.linalg.decompositions": """
            cholesky det eig eigh eigvals eigvalsh logdet lu matrix_rank qr slogdet svd
        """,
        "retrograde.linalg.diagonals": """
            adjoint band_part diag diag_part matrix_transpose set_diag tensor_diag
            tensor_diag_part trace
        """,
        "retrograde.linalg.functions": """
            expm logm sqrtm
        """,
        "retrograde.linalg.norms": """
            norm normalize
        """,
        "retrograde.linalg.products": """
            cross matmul matvec tensordot
        """,
        "retrograde.linalg.solvers": """
            cholesky_solve inv lstsq lu_matrix_inverse lu_reconstruct lu_solve pinv solve
            triangular_solve
        """,
        "retrograde.linalg.sums": """
            einsum
        """,
        "retrograde.math": """
            l2_normalize
        """,
        "retrograde.toplevel.clipping": """
            global_norm
        """,
        "retrograde.toplevel.creating": """
            eye
        """,
    },
    "retrograde.math": {
        "": """
            special=retrograde.math.special
        """,
        "retrograde.math.arithmetic": """
            accumulate_n add add_n divide divide_no_nan equal floordiv floormod greater
            greater_equal less less_equal logical_and logical_not logical_or logical_xor maximum
            minimum mod multiply multiply_no_nan negative not_equal polyval pow scalar_mul
            squared_difference subtract truediv truncatediv truncatemod xdivy xlog1py xlogy
        """,
        "retrograde.math.counting": """
            approx_max_k approx_min_k bincount confusion_matrix in_top_k invert_permutation
            sobol_sample top_k
        """,
        "retrograde.math.elementary": """
            abs acos acosh angle asin asinh atan atan2 atanh ceil conj cos cosh erf exp expm1
            floor imag is_finite is_inf is_nan log log1p log_sigmoid real reciprocal
            reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus softsign sqrt square
            tan tanh
        """,
        "retrograde.math.gamma": """
            betainc digamma erfc erfcinv erfinv igamma igammac lbeta lgamma ndtri nextafter
            polygamma zeta
        """,
        "retrograde.math.reductions": """
            argmax argmin count_nonzero cumprod cumsum cumulative_logsumexp is_non_decreasing
            is_strictly_increasing l2_normalize log_softmax reduce_all reduce_any
            reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod
            reduce_std reduce_sum reduce_variance softmax zero_fraction
        """,
        "retrograde.math.segments": """
            segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max
            unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
            unsorted_segment_sqrt_n unsorted_segment_sum
        """,
        "retrograde.math.special": """
            bessel_i0 bessel_i0e bessel_i1 bessel_i1e
        """,
    },
    "retrograde.nn": {
        "": """
            experimental=retrograde.nn.experimental
        """,
        "retrograde.math": """
            approx_max_k approx_min_k in_top_k l2_normalize log_softmax sigmoid softmax softplus
            softsign tanh top_k zero_fraction
        """,
        "retrograde.nn.activations": """
            crelu elu gelu leaky_relu relu relu6 selu silu swish
        """,
        "retrograde.nn.averaging": """
            compute_average_loss scale_regularization_loss
        """,
        "retrograde.nn.blocks": """
            depth_to_space space_to_batch space_to_depth with_space_to_batch
        """,
        "retrograde.nn.convolutions": """
            atrous_conv2d atrous_conv2d_transpose conv1d conv1d_transpose conv2d conv2d_transpose
            conv3d conv3d_transpose conv_transpose convolution
        """,
        "retrograde.nn.ctc": """
            collapse_repeated ctc_loss ctc_unique_labels
        """,
        "retrograde.nn.decoding": """
            ctc_beam_search_decoder ctc_greedy_decoder
        """,
        "retrograde.nn.depthwise": """
            depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input
            separable_conv2d
        """,
        "retrograde.nn.embeddings": """
            embedding_lookup_sparse safe_embedding_lookup_sparse
        """,
        "retrograde.nn.fractional": """
            fractional_avg_pool fractional_max_pool
        """,
        "retrograde.nn.isotonic": """
            isotonic_regression
        """,
        "retrograde.nn.lookups": """
            dropout embedding_lookup
        """,
        "retrograde.nn.losses": """
            l2_loss log_poisson_loss sigmoid_cross_entropy_with_logits
            softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits
            weighted_cross_entropy_with_logits
        """,
        "retrograde.nn.morphology": """
            dilation2d erosion2d
        """,
        "retrograde.nn.normalisation": """
            batch_norm_with_global_normalization batch_normalization bias_add
            local_response_normalization lrn moments normalize_moments sufficient_statistics
            weighted_moments
        """,
        "retrograde.nn.pooling": """
            avg_pool avg_pool1d avg_pool2d avg_pool3d max_pool max_pool1d max_pool2d max_pool3d
            max_pool_with_argmax pool
        """,
        "retrograde.nn.sampled": """
            compute_accidental_hits nce_loss sampled_softmax_loss
        """,
        "retrograde.random.candidates": """
            all_candidate_sampler fixed_unigram_candidate_sampler
            learned_unigram_candidate_sampler
        """,
    },
    "retrograde.random": {
        "": """
            experimental=retrograde.random.experimental
        """,
        "retrograde.random._drawing": """
            Algorithm
        """,
        "retrograde.random.candidates": """
            all_candidate_sampler fixed_unigram_candidate_sampler
            learned_unigram_candidate_sampler log_uniform_candidate_sampler
            uniform_candidate_sampler
        """,
        "retrograde.random.generator": """
            Generator create_rng_state get_global_generator set_global_generator
        """,
        "retrograde.random.stateful": """
            categorical gamma normal poisson set_seed shuffle truncated_normal uniform
        """,
        "retrograde.random.stateless": """
            fold_in split stateless_binomial stateless_categorical stateless_gamma
            stateless_normal stateless_parameterized_truncated_normal stateless_poisson
            stateless_truncated_normal stateless_uniform
        """,
    },
    "retrograde.signal": {
        "retrograde.signal.cosine": """
            dct idct inverse_mdct mdct
        """,
        "retrograde.signal.fourier": """
            fft fft2d fft3d fftnd fftshift ifft ifft2d ifft3d ifftnd ifftshift irfft irfft2d
            irfft3d irfftnd rfft rfft2d rfft3d rfftnd
        """,
        "retrograde.signal.framing": """
            frame overlap_and_add
        """,
        "retrograde.signal.mel": """
            linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms
        """,
        "retrograde.signal.spectral": """
            inverse_stft inverse_stft_window_fn stft
        """,
        "retrograde.signal.windows": """
            hamming_window hann_window kaiser_bessel_derived_window kaiser_window vorbis_window
        """,
    },
    "retrograde.summary": {
        "": """
            experimental=retrograde.summary.experimental
        """,
        "retrograde.summary.plugins": """
            audio histogram image scalar text trace_export trace_off trace_on write
        """,
        "retrograde.summary.writer": """
            SummaryWriter create_file_writer create_noop_writer flush record_if
            should_record_summaries
        """,
    },
    "retrograde.train": {
        "": """
            experimental=retrograde.train.experimental
        """,
        "retrograde.train._state": """
            checkpoints_iterator get_checkpoint_state latest_checkpoint list_variables
            load_checkpoint load_variable
        """,
        "retrograde.train.averages": """
            ExponentialMovingAverage
        """,
        "retrograde.train.checkpoint": """
            Checkpoint CheckpointOptions
        """,
        "retrograde.train.manager": """
            CheckpointManager
        """,
    },
}
