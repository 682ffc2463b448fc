"""DeviceSpec: a parsed device name."""

from __future__ import annotations

from typing import Any

from retrograde.values.arguments import as_int, as_text, expect

_FIELDS = ("job", "replica", "task", "device_type", "device_index")
_KNOWN_TYPES = ("CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU", "CUSTOM")


class DeviceSpec:
    """A parsed device name; each part may be `None`.

    >>> tf.DeviceSpec.from_string("/job:worker/task:1/GPU:0").to_string()
    '/job:worker/task:1/device:GPU:0'
    """

    __slots__ = tuple(f"_{field}" for field in _FIELDS)

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        for part in (job, device_type):
            expect(part, (str, type(None)), "DeviceSpec", "a job and a device_type of type str")
        self._job = job
        self._replica = None if replica is None else as_int(replica, "DeviceSpec: replica")
        self._task = None if task is None else as_int(task, "DeviceSpec: task")
        if device_type is not None and device_type.upper() in _KNOWN_TYPES:
            device_type = device_type.upper()
        self._device_type = device_type
        self._device_index = (
            None if device_index is None else as_int(device_index, "DeviceSpec: device_index")
        )

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Parses a name such as "/job:worker/task:1/device:GPU:0", "/CPU:0" or "cpu:0"."""
        expect(spec, str, "DeviceSpec.from_string", "a string")
        fields: dict[str, Any] = {}
        for part in filter(None, spec.split("/")):
            attribute, *values = part.split(":")
            if attribute in ("job", "replica", "task") and len(values) == 1:
                fields[attribute] = values[0]
                continue
            is_known = attribute.upper() in _KNOWN_TYPES
            if attribute == "device":
                attribute, *values = values or [""]
                is_known = bool(attribute)
            if not is_known or len(values) > 1:
                raise ValueError(
                    f"Unknown attribute '{attribute}' is encountered while parsing the device "
                    f"spec: '{as_text(spec)}'. Expected a name like '/CPU:0' or "
                    "'/job:localhost/replica:0/task:0/device:CPU:0'."
                )
            if "device_type" in fields:
                raise ValueError(
                    "Multiple device types are not allowed while parsing the device spec: "
                    f"{as_text(spec)}."
                )
            fields["device_type"] = attribute
            fields["device_index"] = None if values in ([], ["*"]) else values[0]
        return cls(**fields)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Parses another name into a new spec."""
        return type(self).from_string(spec)

    def to_string(self) -> str:
        """Returns the name, without the parts that are `None`."""
        parts = [
            f"/{field}:{getattr(self, field)}"
            for field in ("job", "replica", "task")
            if getattr(self, field) is not None
        ]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        return "".join(parts)

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """Returns a copy with some parts replaced."""
        return type(self)(**self._parts() | kwargs)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Returns a copy with the parts of `dev` that are not `None`."""
        expect(dev, DeviceSpec, "make_merged_spec", "a tf.DeviceSpec")
        return self.replace(**{k: v for k, v in dev._parts().items() if v is not None})

    @property
    def job(self) -> str | None:
        """The job."""
        return self._job

    @property
    def replica(self) -> int | None:
        """The index of the replica."""
        return self._replica

    @property
    def task(self) -> int | None:
        """The index of the task."""
        return self._task

    @property
    def device_type(self) -> str | None:
        """The device type, such as "CPU"."""
        return self._device_type

    @property
    def device_index(self) -> int | None:
        """The index among the devices of this type."""
        return self._device_index

    def _parts(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in _FIELDS}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        parts = ", ".join(f"{field}={value}" for field, value in self._parts().items())
        return f"<DeviceSpec({parts})>"
