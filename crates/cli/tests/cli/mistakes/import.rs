//! More mistakes around importing than those that were found by trying.

use super::case::{check, gzip, integers, parquet, utf16};

const EDGES: (&str, &[u8]) = ("e.csv", b"src,dst\na,b\nb,c\n");
const NODES: (&str, &[u8]) = ("n.csv", b"id,label,x0\na,0,1\nb,1,3\nc,0,5\n");
const ONE: &str = "import csv --edges e.csv --out OUT";
const BOTH: &str = "import csv --edges e.csv --nodes n.csv --out OUT";

#[test]
fn how_tables_are_written() {
    check(&[
        (
            "semicolons in nodes only",
            &[EDGES, ("n.csv", b"id;label;x0\na;0;1\nb;1;2\nc;0;3\n")],
            BOTH,
            1,
            &["n.csv: fields are separated by ';', not by ','", "--delimiter ';'"],
        ),
        (
            "semicolons in nodes without header",
            &[("e.csv", b"0,1\n1,2\n"), ("n.csv", b"0;1\n1;0\n2;1\n")],
            BOTH,
            1,
            &["n.csv: fields are separated by ';'"],
        ),
        (
            "decimal commas under semicolons",
            &[("e.csv", b"src;dst\na;b\n"), ("n.csv", b"id;x0\na;0,5\nb;1,5\n")],
            &format!("{BOTH} --delimiter ; --features x0"),
            1,
            &[
                "n.csv: column 'x0' holds text such as '0,5', numbers are needed",
                "without decimal or thousands commas",
            ],
        ),
        (
            "a delimiter at the end of rows, not of the header",
            &[("e.csv", b"src,dst\n0,1,\n1,2,\n")],
            ONE,
            1,
            &["e.csv: line 2: 3 fields, there are 2 columns", "ends in a delimiter"],
        ),
        (
            "a delimiter at the end of all lines",
            &[("e.csv", b"src,dst,\n0,1,\n1,2,\n")],
            ONE,
            0,
            &["\"nodes\":3"],
        ),
        (
            "a quoted header",
            &[("e.csv", b"\"src\",\"dst\"\n0,1\n")],
            ONE,
            0,
            &["src → source", "\"edges\":1"],
        ),
        (
            "a name twice in the header",
            &[("e.csv", b"src,dst,w,w\n0,1,2,3\n")],
            ONE,
            1,
            &["e.csv: column 'w' is there twice"],
        ),
        (
            "blanks around names and ids",
            &[("e.csv", b"src , dst\na , b\n b,c \n"), NODES],
            BOTH,
            0,
            &["\"nodes\":3", "first edge a → b"],
        ),
        (
            "blanks in quotes belong to ids",
            &[("e.csv", b"src,dst\n\"a \",b\na,b\n")],
            ONE,
            0,
            &["\"nodes\":3"],
        ),
        (
            "empty lines and lines of blanks at the end",
            &[("e.csv", b"src,dst\n0,1\n1,2\n\n  \n\n")],
            ONE,
            0,
            &["\"edges\":2"],
        ),
        (
            "mixed ends of lines",
            &[("e.csv", b"src,dst\r\n0,1\n1,2\r\n2,0")],
            ONE,
            0,
            &["\"edges\":3"],
        ),
        (
            "ends of lines of old Macintoshes",
            &[("e.csv", b"src,dst\r0,1\r1,2\r")],
            ONE,
            1,
            &["e.csv: line 1: lines end in carriage returns alone", "tr"],
        ),
        (
            "a quote that is not closed",
            &[("e.csv", b"src,dst\n\"a,b\nb,c\n")],
            ONE,
            1,
            &["e.csv: line 2: a quoted field does not end in its line"],
        ),
        (
            "hashtags as ids are no comments",
            &[("e.csv", b"src,dst\nann,#rust\n#rust,#gnn\n")],
            ONE,
            1,
            &["e.csv: line 3: starts with '#'", "quoted"],
        ),
        (
            "quoted hashtags",
            &[("e.csv", b"src,dst\nann,#rust\n\"#rust\",#gnn\n")],
            ONE,
            0,
            &["\"nodes\":3"],
        ),
        ("comments amid rows", &[("e.csv", b"0,1\n# more\n1,2\n")], ONE, 0, &["\"edges\":2"]),
        (
            "Latin-1",
            &[("e.csv", b"src,dst\nJos\xe9,b\n")],
            ONE,
            1,
            &["e.csv: line 2", "is not UTF-8", "iconv -f LATIN1"],
        ),
        (
            "a missing value in the first row is no header",
            &[("e.csv", b"0,1\n1,2\n2,0\n"), ("n.csv", b"0,NA\n1,3\n2,4\n")],
            BOTH,
            0,
            &["n.csv: columns 0 → id; not used: 1", "no header"],
        ),
        (
            "numbers as names of columns",
            &[("e.csv", b"src,dst\n0,1\n"), ("n.csv", b"node,0,1\n0,5,6\n1,7,8\n")],
            BOTH,
            1,
            &["n.csv: no column 'id'", "--id node"],
        ),
    ]);
}

#[test]
fn how_ids_are_written() {
    check(&[
        (
            "zeros in front make strings",
            &[("e.csv", b"src,dst\n007,012\n012,7\n")],
            ONE,
            0,
            &["strings as ids; first edge 007 → 012", "\"nodes\":3"],
        ),
        (
            "zeros in front far down",
            &[("e.csv", format!("src,dst\n{}7,08\n", "1,2\n".repeat(40_000)).as_bytes())],
            ONE,
            1,
            &["e.csv: line 40002", "'08' is not kept by an integer", "--ids string"],
        ),
        (
            "zeros in front, dropped on request",
            &[("e.csv", b"src,dst\n007,1\n1,7\n")],
            &format!("{ONE} --ids integer"),
            0,
            &["integers as ids", "\"nodes\":2"],
        ),
        (
            "ids with fractions",
            &[("e.csv", b"src,dst\n12.0,13.0\n")],
            ONE,
            1,
            &["e.csv: column 'src' has ids with fractions", "astype('Int64')", "--ids string"],
        ),
        (
            "ids with exponents",
            &[("e.csv", b"src,dst\n1e3,2e3\n")],
            ONE,
            1,
            &["fractions or exponents"],
        ),
        (
            "fractions further down",
            &[("e.csv", b"src,dst\n12,13\n13,14.0\n")],
            ONE,
            1,
            &["e.csv: line 3: column 'dst': '14.0' is not an integer", "the first row has '13'"],
        ),
        (
            "ids over 64 bits further down",
            &[("e.csv", b"src,dst\n1,2\n2,9223372036854775808\n")],
            ONE,
            1,
            &["e.csv: line 3", "is not an integer of 64 bits", "--ids string"],
        ),
        (
            "ids over 64 bits at once",
            &[("e.csv", b"src,dst\n18446744073709551615,2\n")],
            ONE,
            0,
            &["strings as ids; first edge 18446744073709551615 → 2"],
        ),
        (
            "hexadecimal ids",
            &[("e.csv", b"src,dst\n0x1f,0x20\n")],
            ONE,
            0,
            &["strings as ids; first edge 0x1f"],
        ),
        (
            "thousands separators in ids",
            &[("e.csv", b"src,dst\n1,2\n\"1,234\",2\n")],
            ONE,
            1,
            &["e.csv: line 3: column 'src': '1,234' is not an integer"],
        ),
        (
            "a missing end",
            &[("e.csv", b"src,dst\na,b\n,c\n")],
            ONE,
            1,
            &["e.csv: line 3: an id is missing"],
        ),
        (
            "empty quotes as an end",
            &[("e.csv", b"src,dst\na,\"\"\n")],
            ONE,
            1,
            &["e.csv: line 2: an id is missing"],
        ),
        (
            "a node without id",
            &[EDGES, ("n.csv", b"id,label\na,0\n,1\nc,0\n")],
            BOTH,
            1,
            &["n.csv: line 3: an id is missing"],
        ),
    ]);
}

#[test]
fn which_files_are_given() {
    let (columns, arrays, wide) = (parquet(), integers("(2, 1)", &[0, 1]), utf16("0,1\n"));
    let zipped = gzip("0,1\n");
    check(&[
        (
            "edges and nodes swapped",
            &[EDGES, NODES],
            "import csv --edges n.csv --nodes e.csv --out OUT",
            1,
            &["no column", "it has: src, dst"],
        ),
        (
            "one file for both",
            &[EDGES],
            "import csv --edges e.csv --nodes e.csv --out OUT",
            1,
            &["e.csv: no column 'id'", "it has: src, dst"],
        ),
        (
            "a folder for a file",
            &[EDGES],
            "import csv --edges . --out OUT",
            1,
            &[".: is a folder", "it holds: e.csv"],
        ),
        (
            "a pattern for a file",
            &[EDGES],
            "import csv --edges e*.csv --out OUT",
            1,
            &["e*.csv: No such file", "patterns are not expanded"],
        ),
        (
            "a folder that is not there",
            &[],
            "import csv --edges raw/e.csv --out OUT",
            1,
            &["there is no folder /", "raw"],
        ),
        (
            "Parquet called csv",
            &[("e.csv", &columns)],
            "import csv --edges e.csv --src sourceNodeId --dst targetNodeId --out OUT",
            0,
            &["\"edges\":5429"],
        ),
        (
            "text called parquet",
            &[("e.parquet", b"src,dst\n0,1\n")],
            "import parquet --edges e.parquet --out OUT",
            1,
            &["e.parquet: not a Parquet file: it begins like text", "csv"],
        ),
        (
            "Parquet for an array",
            &[("e.npy", &columns)],
            "import npy --edges e.npy --out OUT",
            1,
            &["e.npy: not a readable npy file", "a Parquet file", "import parquet"],
        ),
        (
            "text for an array",
            &[("e.npy", b"0,1\n")],
            "import npy --edges e.npy --out OUT",
            1,
            &["begins like text", "import csv"],
        ),
        (
            "an array for text",
            &[("e.csv", &arrays)],
            ONE,
            1,
            &["e.csv: is a numpy array", "import npy"],
        ),
        (
            "a workbook for text",
            &[("e.xlsx", b"PK\x03\x04\x14\x00\x06\x00")],
            "import csv --edges e.xlsx --out OUT",
            1,
            &["e.xlsx: is a zip archive or an Excel workbook", "save the sheet as CSV"],
        ),
        (
            "zstd for text",
            &[("e.csv", b"\x28\xb5\x2f\xfd\x00\x00\x00\x00")],
            ONE,
            1,
            &["e.csv: is compressed with zstd"],
        ),
        (
            "UTF-16 for triples",
            &[("t.txt", &wide)],
            "import triples --train t.txt --out OUT",
            1,
            &["t.txt: is text in UTF-16"],
        ),
        (
            "gzip for triples, in the wrong number",
            &[("t.txt", &zipped)],
            "import triples --train t.txt --out OUT",
            1,
            &["t.txt: 2 columns, triples have 3", "separated by ','"],
        ),
        (
            "no features without their table",
            &[EDGES],
            "import csv --edges e.csv --features x* --out OUT",
            2,
            &["--features", "--nodes"],
        ),
        (
            "no categories either",
            &[EDGES],
            "import csv --edges e.csv --categorical x --out OUT",
            2,
            &["--categorical", "--nodes"],
        ),
        (
            "nothing to fill in",
            &[EDGES],
            "import csv --edges e.csv --impute mean --out OUT",
            2,
            &["--impute requires feature columns", "--edge-features"],
        ),
    ]);
}
