//! Parses lines as messages, and writes messages as lines.

use serde_json::{Map, Value, json};

use crate::error::{Error, INVALID_REQUEST, PARSE_ERROR};

/// A message from the peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Must be answered with this id.
    Request { id: Value, method: String, params: Value },
    /// Has no answer.
    Notification { method: String, params: Value },
    /// The answer to one of our requests.
    Response { id: Value, result: Result<Value, Error> },
}

/// A line that is not a message, and the error to answer it with.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// `Null` where the line has no valid id.
    pub id: Value,
    pub error: Error,
}

impl Message {
    /// Reads a line strictly by the specification. For a server, which answers invalid lines.
    ///
    /// # Errors
    /// When the line is not JSON or not a message.
    pub fn read(line: &[u8]) -> Result<Self, Box<Malformed>> {
        let malformed =
            |id: Value, code, message: String| Box::new(Malformed { id, error: Error::new(code, message) });
        let invalid = |id, message: &str| malformed(id, INVALID_REQUEST, message.into());
        let value: Value = serde_json::from_slice(line)
            .map_err(|e| malformed(Value::Null, PARSE_ERROR, format!("the line is not JSON: {e}")))?;
        let Value::Object(mut message) = value else {
            return Err(invalid(Value::Null, "a message must be a JSON object"));
        };
        let id = message.remove("id");
        if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_number() || id.is_null())) {
            return Err(invalid(Value::Null, "an id must be a string or a number"));
        }
        match (message.remove("method"), id) {
            (Some(Value::String(method)), id) => Ok(call(id, method, message.remove("params"))),
            (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
                // An answer that says both yes and no is a no.
                let error = message.remove("error").filter(|error| !error.is_null());
                let result = match (message.remove("result"), error) {
                    (Some(result), None) => Ok(result),
                    (_, error) => Err(Error::from_value(&error.unwrap_or_default())),
                };
                Ok(Self::Response { id, result })
            }
            (_, id) => Err(invalid(
                id.unwrap_or_default(),
                "a message needs a method, or an id with a result or an error",
            )),
        }
    }

    /// Reads a line of a program that may also print other lines, and whose messages may lack members. `None`: the line
    /// is not a message.
    pub fn read_lenient(line: &str) -> Option<Self> {
        let Value::Object(mut message) = serde_json::from_str(line).ok()? else { return None };
        let id = message.remove("id").filter(|id| !id.is_null());
        if let Some(Value::String(method)) = message.remove("method") {
            return Some(call(id, method, message.remove("params")));
        }
        let result = match message.remove("error") {
            Some(error) if !error.is_null() => Err(Error::from_value(&error)),
            _ => Ok(message.remove("result").unwrap_or_default()),
        };
        Some(Self::Response { id: id?, result })
    }
}

fn call(id: Option<Value>, method: String, params: Option<Value>) -> Message {
    let params = params.unwrap_or_else(|| Value::Object(Map::new()));
    match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    }
}

/// Writes messages as lines. JSON readers ignore the order of members; each side keeps its own order, so that its lines
/// stay the same byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// `jsonrpc` is the first member.
    VersionFirst,
    /// `jsonrpc` is the last member.
    VersionLast,
}

impl Encoder {
    /// The line of a request.
    pub fn request(self, id: &Value, method: &str, params: &Value) -> String {
        self.line(json!({"id": id, "method": method, "params": params}))
    }

    /// The line of a notification.
    pub fn notification(self, method: &str, params: &Value) -> String {
        self.line(json!({"method": method, "params": params}))
    }

    /// The line of the response to the request with this id.
    pub fn answer(self, id: &Value, result: Result<Value, Error>) -> String {
        self.line(match result {
            Ok(result) => json!({"id": id, "result": result}),
            Err(error) => json!({"id": id, "error": error.to_value()}),
        })
    }

    fn line(self, members: Value) -> String {
        let version = |at: Self| (self == at).then(|| ("jsonrpc".to_owned(), Value::from("2.0")));
        let Value::Object(members) = members else { return String::new() };
        let message: Map<String, Value> = version(Self::VersionFirst)
            .into_iter()
            .chain(members)
            .chain(version(Self::VersionLast))
            .collect();
        Value::Object(message).to_string() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_a_notification_a_response_or_malformed() {
        let request = Message::read(br#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1}}"#);
        let want = Message::Request { id: json!(7), method: "m".into(), params: json!({"a": 1}) };
        assert_eq!(request, Ok(want));
        assert_eq!(
            Message::read(br#"{"method":"m"}"#),
            Ok(Message::Notification { method: "m".into(), params: json!({}) })
        );
        let answer = |result| Ok(Message::Response { id: json!("x"), result });
        assert_eq!(Message::read(br#"{"id":"x","result":{}}"#), answer(Ok(json!({}))));
        assert_eq!(
            Message::read(br#"{"id":"x","error":{"code":1,"message":"no"}}"#),
            answer(Err(Error::new(1, "no")))
        );
        for both in [
            &br#"{"id":"x","result":{"outcome":"yes"},"error":{"code":1,"message":"no"}}"#[..],
            br#"{"id":"x","error":{"code":1,"message":"no"},"result":null}"#,
        ] {
            assert_eq!(Message::read(both), answer(Err(Error::new(1, "no"))), "closed when in doubt");
            let lenient = Message::read_lenient(std::str::from_utf8(both).unwrap());
            assert_eq!(lenient, answer(Err(Error::new(1, "no"))).ok());
        }
        assert_eq!(Message::read(br#"{"id":"x","result":1,"error":null}"#), answer(Ok(json!(1))));
        for (line, code, id) in [
            (&b"{"[..], PARSE_ERROR, Value::Null),
            (b"\xff\xfe", PARSE_ERROR, Value::Null),
            (b"[]", INVALID_REQUEST, Value::Null),
            (b"{\"id\":3}", INVALID_REQUEST, json!(3)),
            (b"{\"id\":[],\"method\":\"m\"}", INVALID_REQUEST, Value::Null),
            (b"{\"id\":3,\"method\":4}", INVALID_REQUEST, json!(3)),
            (&[b'['; 100_000], PARSE_ERROR, Value::Null),
        ] {
            let malformed = Message::read(line).unwrap_err();
            assert_eq!((malformed.error.code, malformed.id), (code, id));
        }
    }

    #[test]
    fn other_output_of_a_program_is_no_message_and_missing_members_are_forgiven() {
        for line in ["", "Loading...", "[1]", "{\"level\":30}", "{\"id\":null,\"result\":1}"] {
            assert_eq!(Message::read_lenient(line), None, "{line}");
        }
        let response = |result| Some(Message::Response { id: json!(3), result });
        assert_eq!(Message::read_lenient("{\"id\":3}"), response(Ok(Value::Null)));
        assert_eq!(Message::read_lenient("{\"id\":3,\"error\":null,\"result\":1}"), response(Ok(json!(1))));
        assert_eq!(
            Message::read_lenient("{\"id\":3,\"error\":{}}"),
            response(Err(Error::new(0, "it failed")))
        );
        assert_eq!(
            Message::read_lenient("{\"id\":null,\"method\":\"m\"}"),
            Some(Message::Notification { method: "m".into(), params: json!({}) })
        );
    }

    #[test]
    fn lines_have_their_members_in_order() {
        let (first, last) = (Encoder::VersionFirst, Encoder::VersionLast);
        let params = json!({"b": 1, "a": "x\ny"});
        assert_eq!(
            first.request(&json!(1), "m", &params),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"b\":1,\"a\":\"x\\ny\"}}\n"
        );
        assert_eq!(
            last.request(&json!(1), "m", &params),
            "{\"id\":1,\"method\":\"m\",\"params\":{\"b\":1,\"a\":\"x\\ny\"},\"jsonrpc\":\"2.0\"}\n"
        );
        assert_eq!(
            first.notification("m", &json!({})),
            "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}\n"
        );
        assert_eq!(
            first.answer(&json!("i"), Ok(Value::Null)),
            "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":null}\n"
        );
        assert_eq!(
            last.answer(&Value::Null, Err(Error::new(-1, "no"))),
            "{\"id\":null,\"error\":{\"code\":-1,\"message\":\"no\"},\"jsonrpc\":\"2.0\"}\n"
        );
    }
}
