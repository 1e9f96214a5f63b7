"""What `bench.models` measures, as pydantic models of nobody's: the same fields, and unknown ones kept.

Nothing in them is checked beyond its type: a schema is a dict, an optional member may be null. What they take is what
pydantic itself needs, so no model that keeps unknown fields is much faster.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Plain(BaseModel):
    """A model that keeps unknown fields."""

    model_config = ConfigDict(extra="allow")


class Icon(Plain):
    """A picture."""

    src: str
    mime_type: str | None = Field(None, alias="mimeType")
    sizes: list[str] | None = None
    theme: Literal["dark", "light"] | None = None


class ToolAnnotations(Plain):
    """Hints on a tool."""

    title: str | None = None
    read_only_hint: bool | None = Field(None, alias="readOnlyHint")
    destructive_hint: bool | None = Field(None, alias="destructiveHint")
    idempotent_hint: bool | None = Field(None, alias="idempotentHint")
    open_world_hint: bool | None = Field(None, alias="openWorldHint")


class ToolExecution(Plain):
    """How a tool runs."""

    task_support: Literal["forbidden", "optional", "required"] | None = Field(None, alias="taskSupport")


class Tool(Plain):
    """A tool."""

    name: str
    input_schema: dict[str, Any] = Field(alias="inputSchema")
    title: str | None = None
    icons: list[Icon] | None = None
    description: str | None = None
    execution: ToolExecution | None = None
    output_schema: dict[str, Any] | None = Field(None, alias="outputSchema")
    annotations: ToolAnnotations | None = None
    meta: dict[str, Any] | None = Field(None, alias="_meta")


class ListToolsResult(Plain):
    """A page of tools."""

    tools: list[Tool]
    next_cursor: str | None = Field(None, alias="nextCursor")
    meta: dict[str, Any] | None = Field(None, alias="_meta")


class TaskMetadata(Plain):
    """What is asked of a task."""

    ttl: int | None = None


class CallToolRequestParams(Plain):
    """A call."""

    name: str
    task: TaskMetadata | None = None
    arguments: dict[str, Any] | None = None
    meta: dict[str, Any] | None = Field(None, alias="_meta")


class Annotations(Plain):
    """Hints on a block."""

    audience: list[Literal["assistant", "user"]] | None = None
    priority: float | None = None
    last_modified: str | None = Field(None, alias="lastModified")


class TextContent(Plain):
    """A block of text."""

    type: Literal["text"]
    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(None, alias="_meta")


class ImageContent(Plain):
    """A picture as a block."""

    type: Literal["image"]
    data: str
    mime_type: str = Field(alias="mimeType")
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(None, alias="_meta")


class CallToolResult(Plain):
    """What a call answers."""

    content: list[Annotated[TextContent | ImageContent, Field(discriminator="type")]]
    structured_content: dict[str, Any] | None = Field(None, alias="structuredContent")
    is_error: bool | None = Field(None, alias="isError")
    meta: dict[str, Any] | None = Field(None, alias="_meta")
