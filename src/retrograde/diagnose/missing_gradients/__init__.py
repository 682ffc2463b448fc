"""Why a gradient is `None`: `tape.explain`, and what `on_none` asks for."""
