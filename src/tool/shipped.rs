//! The tools in the executable: every tool of the repository's `tools/`.

macro_rules! embedded {
    ($($file:literal),* $(,)?) => {
        /// The name of each file and its text, in the order of names. A test holds the list equal to the folder.
        pub const TOOLS: &[(&str, &str)] = &[$(($file, include_str!(concat!("../../tools/", $file)))),*];
    };
}

embedded!();

#[cfg(test)]
mod tests {
    use super::super::folder::shipped;
    use super::super::read;
    use super::*;

    #[test]
    fn the_list_is_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .map(|entries| {
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
            })
            .unwrap_or_default();
        files.retain(|file| file.ends_with(".yml") || file.contains(".tool."));
        files.sort();
        assert_eq!(TOOLS.iter().map(|(file, _)| *file).collect::<Vec<_>>(), files);
    }

    #[test]
    fn every_one_of_them_is_valid() {
        for (file, text) in TOOLS {
            let found = shipped(file, text).unwrap_or_else(|| panic!("{file} names no tool"));
            if file.ends_with(".yml") {
                let read = read::parse(file, text, &found.name);
                assert!(read.is_ok(), "{:#?}", read.err());
            }
        }
    }
}
