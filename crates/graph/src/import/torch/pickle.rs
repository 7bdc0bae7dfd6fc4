//! The stack machine of pickles, as far as tensors and arrays need it (protocols 2 to 4).

use std::collections::HashMap;

use super::archive::Archive;
use super::numbers::Span;
use super::objects::{Name, Objects, Value, Wrong, form};

/// Memory charged per object: its places on the stack, in a container and in the memo.
const OBJECT: u64 = 64;
/// Memory charged per call: a tensor has a shape, strides and a name.
const CALL: u64 = 512;
/// The most arguments of a call that torch and numpy write.
const ARGUMENTS: usize = 8;

/// The machine, before or amid its program.
pub(super) struct Machine<'a> {
    at: usize,
    stack: Vec<Value>,
    /// Heights of the stack at its marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Value>,
    made: Objects,
    archive: &'a Archive,
    memory: u64,
    charged: u64,
}

impl<'a> Machine<'a> {
    /// A machine whose program is `pickle`, with records in `archive`.
    pub fn new(pickle: Vec<u8>, archive: &'a Archive, memory: u64) -> Self {
        let charged = pickle.len() as u64;
        let made = Objects::new(pickle);
        let stack = Vec::new();
        let marks = Vec::new();
        let memo = HashMap::new();
        Self { at: 0, stack, marks, memo, made, archive, memory, charged }
    }

    /// Runs to the end; returns all objects, and the one that was pickled.
    pub fn run(mut self) -> Result<(Objects, Value), Wrong> {
        loop {
            match self.byte()? {
                b'.' => break,
                code => self.step(code)?,
            }
        }
        let root = self.pop()?;
        Ok((self.made, root))
    }

    fn step(&mut self, code: u8) -> Result<(), Wrong> {
        match code {
            0x80 => self.byte().map(drop),                       // PROTO
            0x95 => self.take(8).map(drop),                      // FRAME
            b'(' => self.mark(),                                 // MARK
            b'N' => self.push(Value::None),                      // NONE
            0x88 => self.push(Value::Bool(true)),                // NEWTRUE
            0x89 => self.push(Value::Bool(false)),               // NEWFALSE
            b'K' => self.unsigned(1),                            // BININT1
            b'M' => self.unsigned(2),                            // BININT2
            b'J' => self.signed(4),                              // BININT
            0x8a => self.long(),                                 // LONG1
            0x8c => self.text(1),                                // SHORT_BINUNICODE
            b'X' => self.text(4),                                // BINUNICODE
            0x8d => self.text(8),                                // BINUNICODE8
            b'C' => self.bytes(1),                               // SHORT_BINBYTES
            b'B' => self.bytes(4),                               // BINBYTES
            0x8e => self.bytes(8),                               // BINBYTES8
            b')' | b']' => self.tuple(0),                        // EMPTY_TUPLE, EMPTY_LIST
            0x85..=0x87 => self.tuple(usize::from(code - 0x84)), // TUPLE1 to TUPLE3
            b't' => self.tuple_from_mark(),                      // TUPLE
            b'}' => self.dict(),                                 // EMPTY_DICT
            b'a' => self.append(false),                          // APPEND
            b'e' => self.append(true),                           // APPENDS
            b's' => self.set_items(false),                       // SETITEM
            b'u' => self.set_items(true),                        // SETITEMS
            b'q' => self.put(1),                                 // BINPUT
            b'r' => self.put(4),                                 // LONG_BINPUT
            0x94 => self.put(0),                                 // MEMOIZE
            b'h' => self.get(1),                                 // BINGET
            b'j' => self.get(4),                                 // LONG_BINGET
            b'c' => self.global(),                               // GLOBAL
            0x93 => self.stack_global(),                         // STACK_GLOBAL
            b'Q' => self.persistent(),                           // BINPERSID
            b'R' => self.call(),                                 // REDUCE
            b'b' => self.set_state(),                            // BUILD
            other => form(format!("has the instruction {other:#04x}, which no tensor needs")),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<Span, Wrong> {
        let start = self.at;
        match start.checked_add(bytes).filter(|&end| end <= self.made.pickle.len()) {
            None => form("ends early"),
            Some(end) => {
                self.at = end;
                Ok(Span { start, end })
            }
        }
    }

    fn byte(&mut self) -> Result<u8, Wrong> {
        self.take(1).map(|span| self.made.pickle[span.start])
    }

    /// A little-endian number of up to 8 bytes.
    fn little(&mut self, bytes: usize) -> Result<u64, Wrong> {
        let span = self.take(bytes)?;
        Ok(self.made.bytes(span).iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// A byte range after its length, which has this many bytes.
    fn stretch(&mut self, bytes: usize) -> Result<Span, Wrong> {
        let length = self.little(bytes)?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Wrong> {
        self.charged += bytes;
        if self.charged > self.memory { Err(Wrong::Memory(self.memory)) } else { Ok(()) }
    }

    fn push(&mut self, value: Value) -> Result<(), Wrong> {
        self.charge(OBJECT)?;
        self.stack.push(value);
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Wrong> {
        self.charge(OBJECT)?;
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Pops the top, which must be above the last mark.
    fn pop(&mut self) -> Result<Value, Wrong> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor {
            Ok(self.stack.pop().unwrap_or(Value::None))
        } else {
            form("takes more than there is")
        }
    }

    fn top(&mut self) -> Result<Value, Wrong> {
        let top = self.pop()?;
        self.stack.push(top);
        Ok(top)
    }

    /// Pops all above the last mark, and the mark.
    fn marked(&mut self) -> Result<Vec<Value>, Wrong> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => form("lacks a mark"),
        }
    }

    fn unsigned(&mut self, bytes: usize) -> Result<(), Wrong> {
        let value = self.little(bytes)?;
        self.push(Value::Int(value as i64))
    }

    fn signed(&mut self, bytes: usize) -> Result<(), Wrong> {
        let value = match bytes {
            0 => 0,
            1..=8 => {
                let above = 64 - 8 * bytes as u32;
                ((self.little(bytes)? << above) as i64) >> above
            }
            _ => return form(format!("has an integer of {bytes} bytes")),
        };
        self.push(Value::Int(value))
    }

    fn long(&mut self) -> Result<(), Wrong> {
        let bytes = self.byte()?;
        self.signed(bytes.into())
    }

    fn text(&mut self, bytes: usize) -> Result<(), Wrong> {
        let span = self.stretch(bytes)?;
        match std::str::from_utf8(self.made.bytes(span)) {
            Ok(_) => self.push(Value::Text(span)),
            Err(_) => form("has a string that is not UTF-8"),
        }
    }

    fn bytes(&mut self, bytes: usize) -> Result<(), Wrong> {
        let span = self.stretch(bytes)?;
        self.push(Value::Bytes(span))
    }

    fn tuple_from_mark(&mut self) -> Result<(), Wrong> {
        let items = self.marked()?;
        self.push_list(items)
    }

    fn dict(&mut self) -> Result<(), Wrong> {
        let dict = self.made.dict();
        self.push(dict)
    }

    fn push_list(&mut self, items: Vec<Value>) -> Result<(), Wrong> {
        let list = self.made.list(items);
        self.push(list)
    }

    /// Pops the topmost `count` values, in the order they were pushed.
    fn popped(&mut self, count: usize) -> Result<Vec<Value>, Wrong> {
        let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        items.reverse();
        Ok(items)
    }

    fn tuple(&mut self, length: usize) -> Result<(), Wrong> {
        let items = self.popped(length)?;
        self.push_list(items)
    }

    /// The values that an instruction adds to the container below: all above the mark, or `one`.
    fn added(&mut self, many: bool, one: usize) -> Result<(Value, Vec<Value>), Wrong> {
        let items = if many { self.marked()? } else { self.popped(one)? };
        Ok((self.top()?, items))
    }

    fn append(&mut self, many: bool) -> Result<(), Wrong> {
        let (list, items) = self.added(many, 1)?;
        let Value::List(at) = list else { return form("appends to something else than a list") };
        self.made.lists[at].extend(items);
        Ok(())
    }

    fn set_items(&mut self, many: bool) -> Result<(), Wrong> {
        let (dict, items) = self.added(many, 2)?;
        let Value::Dict(at) = dict else { return form("sets keys of something else than a dict") };
        for pair in items.chunks(2) {
            let &[Value::Text(key), value] = pair else {
                return form("has a dict with keys that are no strings");
            };
            self.made.dicts[at].push((key, value));
        }
        Ok(())
    }

    /// Memoizes the top under a number of this many bytes, or the next one.
    fn put(&mut self, bytes: usize) -> Result<(), Wrong> {
        self.charge(OBJECT)?;
        let number = if bytes == 0 { self.memo.len() as u32 } else { self.little(bytes)? as u32 };
        let top = self.top()?;
        self.memo.insert(number, top);
        Ok(())
    }

    fn get(&mut self, bytes: usize) -> Result<(), Wrong> {
        let number = self.little(bytes)? as u32;
        match self.memo.get(&number) {
            Some(&value) => self.push(value),
            None => form("takes what was never put aside"),
        }
    }

    fn line(&mut self) -> Result<String, Wrong> {
        let rest = &self.made.pickle[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
            return form("ends early");
        };
        let line = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Ok(line)
    }

    fn global(&mut self) -> Result<(), Wrong> {
        let (module, name) = (self.line()?, self.line()?);
        self.push(Value::Name(Name::find(&module, &name)?))
    }

    fn stack_global(&mut self) -> Result<(), Wrong> {
        let (name, module) = (self.pop()?, self.pop()?);
        let (Value::Text(module), Value::Text(name)) = (module, name) else {
            return form("has a name that is no string");
        };
        let found = Name::find(self.made.text(module), self.made.text(name))?;
        self.push(Value::Name(found))
    }

    fn persistent(&mut self) -> Result<(), Wrong> {
        let id = self.pop()?;
        self.charge(CALL)?;
        let storage = self.made.storage(id, self.archive)?;
        self.push(storage)
    }

    fn call(&mut self) -> Result<(), Wrong> {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        let (Value::Name(name), Value::List(arguments)) = (callee, arguments) else {
            return form("calls something that is no function");
        };
        let arguments = &self.made.lists[arguments];
        if arguments.len() > ARGUMENTS {
            return form(format!("calls {name:?} as torch does not"));
        }
        let arguments = arguments.clone();
        self.charge(CALL)?;
        let result = self.made.call(name, &arguments)?;
        self.push(result)
    }

    fn set_state(&mut self) -> Result<(), Wrong> {
        let (state, target) = (self.pop()?, self.top()?);
        self.made.set_state(target, state)
    }
}
