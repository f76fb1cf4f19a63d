//! Reads the fields of an index from bytes.

use super::IndexError;

/// What is left to read, without the checksum.
pub(super) struct Input<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], IndexError> {
        let taken = self
            .at
            .checked_add(length)
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or(IndexError::Truncated { what })?;
        self.at += length;
        Ok(taken)
    }

    pub(super) fn number(&mut self, what: &'static str) -> Result<u32, IndexError> {
        Ok(self.take(4, what)?.iter().fold(0, |all, byte| (all << 8) | u32::from(*byte)))
    }

    pub(super) fn short(&mut self, what: &'static str) -> Result<u16, IndexError> {
        Ok(self.take(2, what)?.iter().fold(0, |all, byte| (all << 8) | u16::from(*byte)))
    }

    /// Bytes up to a NUL. Version 4 takes the NUL with them; before, it is part of the padding.
    pub(super) fn until_nul(&mut self, version: u32) -> Result<&'a [u8], IndexError> {
        const WHAT: &str = "a path";
        let rest = &self.bytes[self.at..];
        let end = rest
            .iter()
            .take(super::read::MAX_PATH + 1)
            .position(|byte| *byte == 0)
            .ok_or(IndexError::Truncated { what: WHAT })?;
        let text = self.take(end, WHAT)?;
        if version == 4 {
            self.at += 1;
        }
        Ok(text)
    }

    /// The variable length number of version 4, as in the offsets of packs.
    pub(super) fn varint(&mut self) -> Result<usize, IndexError> {
        const WHAT: &str = "the prefix of a path";
        let mut value: usize = 0;
        for turn in 0..4 {
            let byte = self.take(1, WHAT)?[0];
            value += usize::from(turn > 0);
            value = (value << 7) | usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(IndexError::Malformed { what: WHAT })
    }
}
