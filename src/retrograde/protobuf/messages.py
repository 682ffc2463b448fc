"""Messages: classes with the interface of generated protocol buffers.

A subclass of `Message` lists its fields. Messages behave as in the `protobuf` package: a submessage
that is only read is not set, and the first change to it sets it in its parent.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

from retrograde.protobuf import wire
from retrograde.protobuf.containers import MessageMap, RepeatedMessages, RepeatedScalars
from retrograde.protobuf.scalars import SCALARS
from retrograde.protobuf.text_format import to_text

_MAX_DEPTH = 100  # of nested messages


class DecodeError(ValueError):
    """Data is not a message of the expected type."""


class Field(NamedTuple):
    """The declaration of a field: `kind` is the name of a scalar type or a message class."""

    number: int
    name: str
    kind: Any
    repeated: bool = False
    is_map: bool = False  # from strings to messages
    oneof: str | None = None
    packed: bool = True
    enum_names: Any = None  # by value

    @property
    def is_message(self) -> bool:
        """Whether values are messages."""
        return not isinstance(self.kind, str)


class Descriptor(NamedTuple):
    """The name and the fields of a message class."""

    full_name: str
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """The name without the package."""
        return self.full_name.rpartition(".")[2]

    @property
    def fields_by_name(self) -> dict[str, Field]:
        """The fields by name."""
        return {field.name: field for field in self.fields}


class Message:
    """The base class of messages. Subclasses define `DESCRIPTOR`."""

    __slots__ = ("_parent", "_unknown", "_unset", "_values")
    __hash__ = None

    DESCRIPTOR: ClassVar[Descriptor]
    _by_name: ClassVar[dict[str, Field]] = {}
    _by_number: ClassVar[dict[int, Field]] = {}

    def __init_subclass__(cls) -> None:
        cls._by_name = cls.DESCRIPTOR.fields_by_name
        cls._by_number = {field.number: field for field in cls.DESCRIPTOR.fields}
        for field in cls.DESCRIPTOR.fields:
            setattr(cls, field.name, _field_property(field))

    def __init__(self, *args: Any, **values: Any) -> None:
        if args:
            raise TypeError("No positional arguments allowed")
        self._clear(None)
        for name, value in values.items():
            field = self._find_field(name)
            if value is not None:
                self._initialize(field, value)

    def _clear(self, parent: tuple[Message, Field] | None) -> None:
        object.__setattr__(self, "_values", {})  # fields that are set, and containers
        object.__setattr__(self, "_unset", {})  # submessages that were only read
        object.__setattr__(self, "_unknown", b"")
        object.__setattr__(self, "_parent", parent)  # only while not set in the parent

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._by_name.get(name)
        if field is None:
            raise AttributeError(f'Protocol message {_name(self)} has no "{name}" field.')
        if field.repeated or field.is_map:
            raise AttributeError(
                f'Assignment not allowed to map, or repeated field "{name}" in protocol message '
                "object."
            )
        if field.is_message:
            raise AttributeError(
                f'Assignment not allowed to message field "{name}" in protocol message object.'
            )
        self._set_in_parent()
        self._clear_oneof(field)
        scalar = SCALARS[field.kind]
        converted = scalar.check(value, f"{self.DESCRIPTOR.full_name}.{name}")
        if converted == scalar.default and field.oneof is None:
            self._values.pop(name, None)
        else:
            self._values[name] = converted

    def _initialize(self, field: Field, value: Any) -> None:
        if field.is_map:
            container = getattr(self, field.name)
            for key, item in value.items():
                container[key].CopyFrom(item)
        elif field.repeated:
            getattr(self, field.name).extend(value)
        elif not field.is_message:
            setattr(self, field.name, value)
        else:
            message = getattr(self, field.name)
            if isinstance(value, dict):
                message.CopyFrom(field.kind(**value))
            elif type(value) is field.kind:
                message.CopyFrom(value)
            else:
                raise TypeError(
                    "Parameter to initialize message field must be dict or instance of same "
                    f"class: expected {field.kind} got {type(value)}."
                )

    def _find_field(self, name: str) -> Field:
        field = self._by_name.get(name)
        if field is None:
            raise ValueError(f'Protocol message {_name(self)} has no "{name}" field.')
        return field

    def _get(self, field: Field) -> Any:
        """Returns the value of a field, or an object that sets it when it changes."""
        value = self._values.get(field.name)
        if value is not None:
            return value
        if field.is_map or field.repeated:
            owner = None if self._parent is None else self
            value = self._values[field.name] = self._container(field, owner)
            return value
        if not field.is_message:
            return SCALARS[field.kind].default
        if field.name not in self._unset:
            message = field.kind()
            message._clear((self, field))
            self._unset[field.name] = message
        return self._unset[field.name]

    def _container(self, field: Field, owner: Message | None) -> Any:
        if field.is_map:
            return MessageMap(field.kind, owner)
        if field.is_message:
            return RepeatedMessages(field.kind, owner)
        field_name = f"{self.DESCRIPTOR.full_name}.{field.name}"
        return RepeatedScalars(SCALARS[field.kind], field_name, owner)

    def _set_in_parent(self) -> None:
        """Sets this message in its parent, before it changes."""
        if self._parent is None:
            return
        parent, field = self._parent
        object.__setattr__(self, "_parent", None)
        parent._set_in_parent()
        parent._clear_oneof(field)
        parent._unset.pop(field.name, None)
        parent._values[field.name] = self

    def _clear_oneof(self, field: Field) -> None:
        if field.oneof is not None:
            for other in self.DESCRIPTOR.fields:
                if other.oneof == field.oneof:
                    self._values.pop(other.name, None)

    def _present_fields(self) -> Iterator[tuple[Field, Any]]:
        for field in sorted(self.DESCRIPTOR.fields):
            value = self._values.get(field.name)
            if value is not None and (len(value) if field.repeated or field.is_map else True):
                yield field, value

    # The interface of the protobuf package

    def HasField(self, field_name: str) -> bool:
        """Returns whether a field, or one field of a oneof, is set."""
        if any(field.oneof == field_name for field in self.DESCRIPTOR.fields):
            return self.WhichOneof(field_name) is not None
        field = self._find_field(field_name)
        if field.repeated or field.is_map:
            raise ValueError(
                f'Protocol message {_name(self)} has no singular "{field_name}" field.'
            )
        return field_name in self._values

    def WhichOneof(self, oneof_group: str) -> str | None:
        """Returns the name of the field of a oneof that is set, or `None`."""
        names = [f.name for f in self.DESCRIPTOR.fields if f.oneof == oneof_group]
        if not names:
            raise ValueError(f'Protocol message {_name(self)} has no "{oneof_group}" field.')
        return next((name for name in names if name in self._values), None)

    def ClearField(self, field_name: str) -> None:
        """Removes the value of a field."""
        names = [f.name for f in self.DESCRIPTOR.fields if f.oneof == field_name]
        for name in names or [self._find_field(field_name).name]:
            self._set_in_parent()
            self._values.pop(name, None)
            self._unset.pop(name, None)

    def Clear(self) -> None:
        """Removes the values of all fields."""
        self._set_in_parent()
        self._clear(None)

    def SetInParent(self) -> None:
        """Sets this message in its parent."""
        self._set_in_parent()

    def ListFields(self) -> list[tuple[Field, Any]]:
        """Returns the fields that are set, with their values."""
        return list(self._present_fields())

    def IsInitialized(self) -> bool:
        """Returns `True`: no field is required."""
        return True

    def ByteSize(self) -> int:
        """Returns the number of bytes of the serialized message."""
        return len(self.SerializeToString())

    def CopyFrom(self, other_msg: Self) -> None:
        """Replaces all fields by copies of the fields of another message of the same class."""
        self._expect_same_class(other_msg, "CopyFrom")
        if other_msg is not self:
            self.Clear()
            self._merge_message(other_msg)

    def MergeFrom(self, other_msg: Self) -> None:
        """Merges another message of the same class: repeated fields are concatenated."""
        self._expect_same_class(other_msg, "MergeFrom")
        self._set_in_parent()
        self._merge_message(other_msg)

    def _merge_message(self, other: Self) -> None:
        for field, value in list(other._present_fields()):
            if field.is_map or field.repeated:
                self._get(field)._merge_items(value)
            elif field.is_message:
                message = self._get(field)
                message._set_in_parent()
                message._merge_message(value)
            else:
                self._clear_oneof(field)
                self._values[field.name] = value
        object.__setattr__(self, "_unknown", self._unknown + other._unknown)

    def _expect_same_class(self, other: Any, method: str) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"Parameter to {method}() must be instance of same class: expected {type(self)} "
                f"got {type(other)}."
            )

    def SerializeToString(self, deterministic: bool = False) -> bytes:
        """Returns the message in the wire format. `deterministic` sorts the keys of maps."""
        parts = []
        for field, value in self._present_fields():
            parts += _encode(field, value, deterministic)
        return b"".join(parts) + self._unknown

    def SerializePartialToString(self, deterministic: bool = False) -> bytes:
        """Returns `SerializeToString(deterministic)`."""
        return self.SerializeToString(deterministic)

    def ParseFromString(self, serialized: bytes) -> int:
        """Replaces all fields by the fields of a serialized message. Returns its size in bytes."""
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: bytes) -> int:
        """Merges a serialized message. Returns its size in bytes."""
        if not isinstance(serialized, bytes | bytearray | memoryview):
            raise TypeError(f"expected bytes, {type(serialized).__name__} found")
        self._set_in_parent()
        try:
            self._merge(bytes(serialized), 0)
        except (wire.WireFormatError, UnicodeDecodeError) as error:
            raise DecodeError(
                f"Error parsing message with type '{self.DESCRIPTOR.full_name}': {error}"
            ) from None
        return len(serialized)

    @classmethod
    def FromString(cls, s: bytes) -> Self:
        """Creates a message from its wire format."""
        message = cls()
        message.MergeFromString(s)
        return message

    def _merge(self, data: bytes, level: int) -> None:
        if level > _MAX_DEPTH:
            raise wire.WireFormatError("messages are nested too deeply")
        unknown = []
        for number, wire_type, value, start, end in wire.read_fields(data):
            field = self._by_number.get(number)
            if field is None or not self._merge_field(field, wire_type, value, level):
                unknown.append(data[start:end])
        if unknown:
            object.__setattr__(self, "_unknown", self._unknown + b"".join(unknown))

    def _merge_field(self, field: Field, wire_type: int, value: Any, level: int) -> bool:
        """Merges the value of a field. Returns `False` if it has another wire type."""
        if not field.is_message:
            scalar = SCALARS[field.kind]
            if field.repeated and wire_type == wire.BYTES and scalar.wire_type != wire.BYTES:
                self._get(field)._items.extend(scalar.unpack(value))
            elif wire_type != scalar.wire_type:
                return False
            elif field.repeated:
                self._get(field)._items.append(scalar.decode(value))
            else:
                self._clear_oneof(field)
                self._values[field.name] = scalar.decode(value)
            return True
        if wire_type != wire.BYTES:
            return False
        if field.is_map:
            key, content = _map_entry(value)
            message = field.kind()
            self._get(field)._items[key] = message
        elif field.repeated:
            content, message = value, field.kind()
            self._get(field)._items.append(message)
        else:
            content, message = value, self._get(field)
            message._set_in_parent()
        message._merge(content, level + 1)
        return True

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return [*self._present_fields()] == [
            *other._present_fields()
        ] and self._unknown == other._unknown

    def __str__(self) -> str:
        return to_text(self)

    __repr__ = __str__

    def __deepcopy__(self, memo: Any) -> Self:
        message = type(self)()
        message._merge_message(self)
        return message

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple:
        return type(self).FromString, (self.SerializeToString(),)


def _name(message: Message) -> str:
    return message.DESCRIPTOR.name


def _field_property(field: Field) -> property:
    return property(lambda message: message._get(field), doc=f"The field `{field.name}`.")


def _encode(field: Field, value: Any, deterministic: bool) -> Iterator[bytes]:
    number = field.number
    if field.is_map:
        for key in sorted(value) if deterministic else value:
            data = value[key].SerializeToString(deterministic)
            yield wire.encode_bytes_field(
                number, wire.encode_bytes_field(1, key.encode()) + wire.encode_bytes_field(2, data)
            )
    elif field.is_message:
        for message in value if field.repeated else [value]:
            yield wire.encode_bytes_field(number, message.SerializeToString(deterministic))
    else:
        scalar = SCALARS[field.kind]
        if field.repeated and field.packed and scalar.wire_type != wire.BYTES:
            yield wire.encode_bytes_field(number, scalar.pack(value))
        else:
            for item in value if field.repeated else [value]:
                yield wire.encode_varint(number << 3 | scalar.wire_type) + scalar.encode(item)


def _map_entry(data: bytes) -> tuple[str, bytes]:
    key, value = b"", b""
    for number, wire_type, content, _, _ in wire.read_fields(data):
        if wire_type == wire.BYTES and number == 1:
            key = content
        elif wire_type == wire.BYTES and number == 2:
            value += content  # several occurrences of a message are merged
    return key.decode(), value
