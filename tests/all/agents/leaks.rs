//! Whether a secret is in what a line left, in any of the spellings that the table uses.

/// The letters of base64.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A secret in every spelling that is looked for.
pub struct Secret {
    pub text: String,
    spellings: Vec<Vec<u8>>,
}

impl Secret {
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut spellings = vec![bytes.to_vec(), reversed, rot13(bytes), hex.into_bytes()];
        spellings.extend((0..3).map(|shift| base64_inside(bytes, shift)));
        Self { text: text.to_owned(), spellings }
    }

    /// Whether these bytes hold it; blanks between its letters do not hide it.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let dense: Vec<u8> =
            bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        self.spellings.iter().any(|spelling| holds(&dense, spelling))
    }
}

fn holds(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

fn rot13(bytes: &[u8]) -> Vec<u8> {
    let turn = |byte: u8, first: u8| first + (byte - first + 13) % 26;
    let one = |byte: &u8| match byte {
        b'a'..=b'z' => turn(*byte, b'a'),
        b'A'..=b'Z' => turn(*byte, b'A'),
        other => *other,
    };
    bytes.iter().map(one).collect()
}

/// The letters of base64 that bytes have wherever they stand in a text, if `shift` bytes stand before them.
fn base64_inside(bytes: &[u8], shift: usize) -> Vec<u8> {
    let skip = (3 - shift) % 3;
    let whole = (bytes.len() - skip) / 3 * 3;
    let mut letters = Vec::new();
    for three in bytes[skip..skip + whole].chunks_exact(3) {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        letters.extend([18, 12, 6, 0].map(|at| LETTERS[bits >> at & 63]));
    }
    letters
}

#[test]
fn a_secret_is_found_in_every_spelling() {
    let secret = Secret::new("CANARYabc123XYZ");
    for text in [
        "SECRET=CANARYabc123XYZ\n",
        "C A N A R Y\na b c 1 2 3 X Y Z",
        "ZYX321cbaYRANAC",
        "PNANELnop123KLM",
        "43414e41525961626331323358595a",
        "U0VDUkVUPUNBTkFSWWFiYzEyM1hZWgo=",
        "PUNBTkFSWWFiYzEyM1hZWgo=",
        "eHhDQU5BUllhYmMxMjNYWVo=",
    ] {
        assert!(secret.is_in(text.as_bytes()), "{text}");
    }
    assert!(!secret.is_in(b"SECRET=CANARYabc123XY"));
}
