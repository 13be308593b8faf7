"""Settings of the sinks: their addresses, their secrets, and how often a notification is repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, model_validator

from tamis.settings.yaml_file import Referred, Secret
from tamis.web.tls import is_loopback
from tamis_alerts.templates import HtmlTemplate, TemplateText

# The name of the log as a sink.
LOG = "log"
# Kafka's limit on the name of a topic.
_TOPIC_LENGTH = 249

# The addresses of many webhooks are secrets, so that they may be references, and are not shown.
Url = Annotated[HttpUrl, Referred]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,253}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Silences = Literal["obey", "ignore"]
ContentType = Annotated[str, Field(pattern=r"^[\w.+-]+/[\w.+-]+(; ?charset=[\w-]+)?$")]
Address = Annotated[str, Field(pattern=r"^[^\s@<>,;:\"\\()\[\]]{1,64}@[A-Za-z0-9.-]{1,253}$")]


def _check_topic(topic: str) -> str:
    if topic.startswith(("tamis.", "tamis-")):
        raise ValueError("names that begin with `tamis.` or `tamis-` are the fleet's own: choose another")
    if topic in (".", ".."):
        raise ValueError("Kafka has no topics called . and ..")
    return topic


def _check_mqtt_topic(topic: str) -> str:
    if any(sign in topic for sign in "+#\0"):
        raise ValueError("a notification is published to one topic: it has no +, # or NUL")
    return topic


class Part(BaseModel):
    """Settings that all sinks have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    ca: Path | None = None
    """PEM file of the authority that signed the receiver's certificate. By default those of the system."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,50}$")] = ""
    """Name of the sink in metrics and logs, and of its queue. By default its kind."""
    alerts: list[str] | None = None
    """The alerts that it is notified of. By default all."""
    timeout: Annotated[float, Field(gt=0, le=600)] = 5.0
    """Seconds of one attempt, from connecting to the answer."""
    # About 20 minutes, with waits of up to 30 s: a receiver that is away for ten of them loses nothing.
    attempts: Annotated[int, Field(ge=1)] = 100
    """The most attempts of one notification, with growing, random waits between them: about 20 minutes."""
    give_up_after: Annotated[float, Field(gt=0)] = 3600.0
    """Seconds since an event, after which no new attempt begins."""
    parallel: Annotated[int, Field(ge=1, le=100)] = 8
    """The most notifications of different keys that are sent at a time."""
    silences: Silences = "obey"
    """`obey`: openings that a silence covers are sent when it ends. `ignore`: they are sent at once."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, values: object) -> object:
        if isinstance(values, dict) and "name" not in values and "kind" in values:
            return {**values, "name": values["kind"]}
        return values

    def wants(self, alert: str) -> bool:
        """True if the episodes of an alert go to this sink."""
        return self.alerts is None or alert in self.alerts


class _Http(Part):
    url: Annotated[Url, Field(repr=False)]
    """Address of the receiver; or `${NAME}`, if the address is a secret."""
    token: Secret | None = None
    """Token, sent as `Authorization: Bearer`: only with https, or to this machine."""

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.token is not None:
            self._refuse_clear_text("token")
        if self.url.username is not None or self.url.password is not None:
            self._refuse_clear_text("user name and password of the address")
        return self

    def _refuse_clear_text(self, secret: str) -> None:
        if self.url.scheme == "http" and not is_loopback((self.url.host or "").strip("[]")):
            raise ValueError(
                f"the {secret} would be sent in clear text: use an address that begins with https://"
            )


class Webhook(_Http):
    """POST of each episode as JSON; `secret` signs it (HMAC-SHA256 of the body, header
    `X-Tamis-Signature`).
    """

    kind: Literal["webhook"]
    secret: Secret | None = None
    """Secret that signs the body: header `X-Tamis-Signature`, HMAC-SHA256."""
    body: TemplateText | None = None
    """Template of the content, in place of the JSON."""
    content_type: ContentType = "application/json"
    """Media type of the content."""


class Alertmanager(_Http):
    """Prometheus Alertmanager, API v2. Its `url` is its base, without /api/v2."""

    kind: Literal["alertmanager"]
    silences: Silences = "ignore"
    """`ignore`: Alertmanager has silences of its own. `obey`: openings that a silence covers are sent when it
    ends.
    """


class Slack(_Http):
    """An incoming webhook of Slack, or of a chat that takes the same JSON, such as Mattermost."""

    kind: Literal["slack"]
    text: TemplateText | None = None
    """Template of the text."""


class PagerDuty(_Http):
    """PagerDuty's Events API v2, or a service that takes the same JSON. An episode is one incident.

    `severities` translates severities of alerts to those of PagerDuty.
    """

    kind: Literal["pagerduty"]
    url: Annotated[Url, Field(repr=False)] = HttpUrl("https://events.pagerduty.com/v2/enqueue")
    """Address of the events API."""
    routing_key: Secret
    """Integration key of the service. Sent only with https, or to this machine."""
    summary: TemplateText | None = None
    """Template of the summary."""
    severities: dict[str, Literal["critical", "error", "warning", "info"]] = {}
    """Severity of an alert: severity of PagerDuty (`critical`, `error`, `warning` or `info`)."""

    @model_validator(mode="after")
    def _encrypted_key(self) -> Self:
        self._refuse_clear_text("routing_key")
        return self


class Mqtt(Part):
    """A topic of an MQTT broker, with acknowledged delivery (QoS 1)."""

    kind: Literal["mqtt"]
    silences: Silences = "ignore"
    """`ignore`: programs get each opening at once. `obey`: one that a silence covers is sent when it ends."""
    host: Host = "127.0.0.1"
    """Name or address of the broker."""
    port: Port = 1883
    """Port of the broker."""
    topic: Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_check_mqtt_topic)]
    """Topic to publish to."""
    protocol: Literal["3.1.1", "5"] = "5"
    """Version of MQTT."""
    retain: bool = False
    """`true` lets the broker keep the newest message for later subscribers."""
    body: TemplateText | None = None
    """Template of the content, in place of the JSON."""
    username: str | None = None
    """User name, if the broker needs one."""
    password: Secret | None = None
    """Password of this user. Sent only with TLS, or to this machine."""
    tls: bool = False
    """`true` encrypts the connection."""

    @model_validator(mode="after")
    def _protected(self) -> Self:
        if self.password is not None and self.username is None:
            raise ValueError("a password needs a username")
        if self.ca is not None and not self.tls:
            raise ValueError("ca would not be used without tls: true")
        if self.password is not None and not self.tls and not is_loopback(self.host):
            raise ValueError("the password would be sent in clear text: set tls: true")
        return self


class KafkaTopic(Part):
    """A topic of the fleet's Kafka, which the operator creates."""

    kind: Literal["kafka"]
    silences: Silences = "ignore"
    """`ignore`: programs get each opening at once. `obey`: one that a silence covers is sent when it ends."""
    topic: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=_TOPIC_LENGTH),
        AfterValidator(_check_topic),
    ]
    """Topic of the fleet's Kafka to write to. The operator creates it."""
    body: TemplateText | None = None
    """Template of the content, in place of the JSON."""

    @model_validator(mode="after")
    def _without_ca(self) -> Self:
        if self.ca is not None:
            raise ValueError("ca would not be used: the connection is that of TAMIS_KAFKA_…")
        return self


class Email(Part):
    """An e-mail by SMTP. `security`: `starttls` (port 587), `tls` from the start (port 465) or `none`."""

    kind: Literal["email"]
    host: Host
    """Name or address of the mail server."""
    port: Port = 587
    """Port of the mail server."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`starttls` encrypts after an exchange in clear text (port 587), `tls` from the start (port 465)."""
    sender: Annotated[Address, Field(alias="from")]
    """Address of the sender."""
    to: Annotated[list[Address], Field(min_length=1, max_length=100)]
    """Addresses of the receivers."""
    subject: TemplateText | None = None
    """Template of the subject."""
    text: TemplateText | None = None
    """Template of the text."""
    html: HtmlTemplate | None = None
    """Template of an HTML part beside the text."""
    username: str | None = None
    """User name, if the mail server needs one."""
    password: Secret | None = None
    """Password of this user. Sent only with TLS, or to this machine."""
    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds of one attempt. A mail server may check the sender meanwhile."""

    @model_validator(mode="after")
    def _protected(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("a username needs a password, and a password a username: give both")
        if self.security == "none" and self.ca is not None:
            raise ValueError("ca would not be used with security: none")
        if self.security == "none" and self.password is not None and not is_loopback(self.host):
            raise ValueError("the password would be sent in clear text: use security: starttls or tls")
        return self


HttpSink = Webhook | Alertmanager | Slack | PagerDuty
Sink = HttpSink | Mqtt | KafkaTopic | Email
