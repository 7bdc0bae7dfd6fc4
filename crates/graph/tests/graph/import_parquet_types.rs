//! Types of Parquet columns: those that are read, by whatever program wrote them, and those that are not.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Files, counts, edges};
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Date32Array, Date64Array, DictionaryArray,
    DurationNanosecondArray, FixedSizeListArray, Int64Array, LargeListArray, LargeStringArray,
    ListArray, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
    Time32SecondArray, Time64NanosecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use gnarl_common::Result;
use gnarl_graph::import::{
    EdgeTable, Feature, IdKind, Impute, NodeTable, TableOptions, Transform, tables,
};
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, Features, Triple};
use parquet::arrow::{ArrowWriter, encode_arrow_schema};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType as Physical, DoubleType, FixedLenByteArrayType,
    Int32Type as Int32, Int64Type as Int64, Int96, Int96Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A file in which Arrow writes columns, in row groups of so many rows.
fn arrow(path: &Path, columns: &[(&str, ArrayRef)], group: usize) {
    let columns = columns.iter().map(|(name, array)| (*name, array.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Levels and values of a leaf.
type Leaf<'a> = Box<dyn Fn(&mut parquet::file::writer::SerializedColumnWriter<'_>) + 'a>;

fn leaf<'a, T: Physical>(
    values: &'a [T::T],
    levels: Option<&'a [i16]>,
    again: Option<&'a [i16]>,
) -> Leaf<'a> {
    Box::new(move |column| {
        column.typed::<T>().write_batch(values, levels, again).unwrap();
    })
}

/// A file of one row group by a schema of its own.
fn raw(path: &Path, schema: &str, leaves: &[Leaf<'_>], hint: Option<&Schema>) {
    let schema = parse_message_type(&format!("message table {{ {schema} }}")).unwrap();
    let hint = hint.map(|hint| KeyValue::new("ARROW:schema".into(), encode_arrow_schema(hint)));
    let metadata = hint.map(|hint| vec![hint]);
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema.into(), properties.into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for leaf in leaves {
        let mut column = group.next_column().unwrap().unwrap();
        leaf(&mut column);
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Imports a nodes table with these features, numbered by row, beside an edge.
fn import(files: &Files, nodes: PathBuf, features: &[&str]) -> Result<Dataset> {
    let mut table = NodeTable::new(DEFAULT_NODE_TYPE, nodes);
    table.features = features.iter().map(|&name| name.into()).collect();
    let edges = EdgeTable::new(Triple::plain(), files.text("edges.csv", "src,dst\n0,1\n"));
    let options = TableOptions { nodes: vec![table], edges: vec![edges], ..Default::default() };
    Ok(tables(&options, &files.fresh("out"))?.dataset)
}

fn features(dataset: &Dataset) -> Vec<f32> {
    let Some(Features::Dense(column)) = dataset.features(DEFAULT_NODE_TYPE).unwrap() else {
        panic!("no features")
    };
    column.values::<f32>().unwrap().to_vec()
}

/// The edge times of a table with such a column.
fn times(files: &Files, path: &Path) -> Vec<i64> {
    let options = TableOptions::plain(path.to_path_buf());
    let dataset = tables(&options, &files.fresh("out")).unwrap().dataset;
    let column = dataset.edge_column(&Triple::plain(), "time").unwrap().unwrap();
    column.values::<i64>().unwrap().to_vec()
}

#[test]
fn integers_have_the_width_that_is_stated() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let schema = "
        required int32 a (INTEGER(8,true)); required int32 b (INTEGER(16,false));
        required int32 c (INTEGER(32,false)); required int64 d (INTEGER(64,true));
        required int32 e (UINT_8); required int32 f (UINT_16); required int32 g (UINT_32);
        required int64 h (UINT_64); required int32 i (INT_8); required int32 j;";
    let small: &[i32] = &[-3, 7];
    let unsigned: &[i32] = &[-1, 7];
    let leaves = [
        leaf::<Int32>(small, None, None),
        leaf::<Int32>(&[60_000, 7], None, None),
        leaf::<Int32>(unsigned, None, None),
        leaf::<Int64>(&[-(1 << 40), 7], None, None),
        leaf::<Int32>(&[200, 7], None, None),
        leaf::<Int32>(&[60_000, 7], None, None),
        leaf::<Int32>(unsigned, None, None),
        leaf::<Int64>(&[-1, 7], None, None),
        leaf::<Int32>(small, None, None),
        leaf::<Int32>(small, None, None),
    ];
    raw(&path, schema, &leaves, None);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let found = features(&import(&files, path.clone(), &names).unwrap());
    let large = u32::MAX as f32;
    let first = [-3.0, 6e4, large, -(2f32.powi(40)), 200.0, 6e4, large, 2f32.powi(64), -3.0, -3.0];
    assert_eq!(found[..10], first);
    assert_eq!(found[10..], [7.0; 10]);

    // As ids: those without a sign keep their upper half.
    let mut nodes = NodeTable::new(DEFAULT_NODE_TYPE, path);
    nodes.id = Some("g".into());
    let edges = files.text("e.csv", "src,dst\n4294967295,7\n");
    let edges = vec![EdgeTable::new(Triple::plain(), edges)];
    for ids in [IdKind::Integer, IdKind::String] {
        let (nodes, edges) = (vec![nodes.clone()], edges.clone());
        let options = TableOptions { nodes, edges, ids, ..Default::default() };
        let made = tables(&options, &files.fresh("out")).unwrap();
        assert_eq!(counts(&made.report)[..2], [2, 1]);
    }
}

#[test]
fn moments_of_every_kind_are_days_and_seconds() {
    let files = Files::new();
    let path = files.path("n.parquet");
    // A day and a half before 1970, and after.
    let seconds = [-129_600i64, 129_600];
    let [millis, micros, nanos] =
        [1_000, 1_000_000, 1_000_000_000].map(|unit| seconds.map(|second| second * unit));
    let mut older = [Int96::new(), Int96::new()];
    for (moment, day) in older.iter_mut().zip([2_440_586, 2_440_589]) {
        let noon = 43_200_000_000_000u64;
        moment.set_data(noon as u32, (noon >> 32) as u32, day);
    }
    let schema = "
        required int96 a; required int64 b (TIMESTAMP_MILLIS); required int64 c (TIMESTAMP_MICROS);
        required int64 d (TIMESTAMP(MILLIS,true)); required int64 e (TIMESTAMP(NANOS,false));
        optional int64 f (TIMESTAMP(MICROS,true));";
    let leaves = [
        leaf::<Int96Type>(&older, None, None),
        leaf::<Int64>(&millis, None, None),
        leaf::<Int64>(&micros, None, None),
        leaf::<Int64>(&millis, None, None),
        leaf::<Int64>(&nanos, None, None),
        leaf::<Int64>(&micros, Some(&[1, 1]), None),
    ];
    raw(&path, schema, &leaves, None);
    let names = ["a", "b", "c", "d", "e", "f"];
    let found = features(&import(&files, path.clone(), &names).unwrap());
    assert_eq!(found, [[-1.5; 6], [1.5; 6]].concat());

    // Seconds, and dates in milliseconds, are integers to Parquet: Arrow's schema tells.
    let moments: [(&str, ArrayRef); 4] = [
        ("s", Arc::new(TimestampSecondArray::from(seconds.to_vec()))),
        ("z", Arc::new(TimestampSecondArray::from(seconds.to_vec()).with_timezone("UTC"))),
        ("d", Arc::new(Date64Array::from(millis.to_vec()))),
        ("e", Arc::new(TimestampNanosecondArray::from(nanos.to_vec()))),
    ];
    arrow(&path, &moments, 10);
    let found = features(&import(&files, path.clone(), &["s", "z", "d", "e"]).unwrap());
    assert_eq!(found, [[-1.5; 4], [1.5; 4]].concat());

    let ends = || -> ArrayRef { Arc::new(Int64Array::from(vec![0, 1])) };
    for (_, time) in moments {
        arrow(&path, &[("src", ends()), ("dst", ends()), ("time", time)], 10);
        assert_eq!(times(&files, &path), seconds);
    }
    let time: ArrayRef = Arc::new(Date32Array::from(vec![-2, 3]));
    arrow(&path, &[("src", ends()), ("dst", ends()), ("time", time)], 10);
    assert_eq!(times(&files, &path), [-172_800, 259_200]);
    let schema = "required int64 src; required int64 dst; required int96 time;";
    let ids = [0i64, 1];
    let leaves = [
        leaf::<Int64>(&ids, None, None),
        leaf::<Int64>(&ids, None, None),
        leaf::<Int96Type>(&older, None, None),
    ];
    raw(&path, schema, &leaves, None);
    assert_eq!(times(&files, &path), seconds);
}

#[test]
fn decimals_are_read_however_they_are_stored() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let schema = "
        required int32 a (DECIMAL(9,2)); required int64 b (DECIMAL(18,4));
        required fixed_len_byte_array(5) c (DECIMAL(10,2)); required binary d (DECIMAL(10,2));
        optional int32 e (DECIMAL(4,1));";
    let fixed = [vec![0xff, 0xff, 0xff, 0xff, 0xce], vec![0, 0, 0, 0x30, 0x39]];
    let fixed: Vec<_> = fixed.into_iter().map(|bytes| ByteArray::from(bytes).into()).collect();
    let free = [vec![0xce], vec![0x30, 0x39]].map(ByteArray::from);
    let leaves = [
        leaf::<Int32>(&[-50, 12_345], None, None),
        leaf::<Int64>(&[-5_000, 1_234_500], None, None),
        leaf::<FixedLenByteArrayType>(&fixed, None, None),
        leaf::<ByteArrayType>(&free, None, None),
        leaf::<Int32>(&[25, -25], Some(&[1, 1]), None),
    ];
    raw(&path, schema, &leaves, None);
    let found = features(&import(&files, path.clone(), &["a", "b", "c", "d", "e"]).unwrap());
    let expected = [-0.5, -0.5, -0.5, -0.5, 2.5, 123.45, 123.45, 123.45, 123.45, -2.5];
    assert_eq!(found, expected);

    // 2 to the 200, and its negative.
    let mut wide = [[0; 32], [0xff; 32]];
    (wide[0][6], wide[1][6]) = (1, 0xff);
    wide[1][7..].fill(0);
    let wide = wide.map(|bytes| ByteArray::from(bytes.to_vec()).into());
    let leaves = [leaf::<FixedLenByteArrayType>(&wide, None, None)];
    raw(&path, "required fixed_len_byte_array(32) w (DECIMAL(76,60));", &leaves, None);
    let found = features(&import(&files, path.clone(), &["w"]).unwrap());
    assert_eq!(found, [1.606_938, -1.606_938]);

    let empty = [&b""[..], b"1"].map(|bytes| ByteArray::from(bytes.to_vec()));
    raw(
        &path,
        "required binary d (DECIMAL(10,2));",
        &[leaf::<ByteArrayType>(&empty, None, None)],
        None,
    );
    let message = import(&files, path, &["d"]).unwrap_err().to_string();
    assert!(
        message.contains("n.parquet: row 0: column 'd' has a value of the wrong length"),
        "{message}"
    );
}

#[test]
fn lists_are_read_however_they_are_written() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let rows = || (0..7).map(|i| Some(vec![Some(i as f32), Some(0.5)]));
    let expected: Vec<f32> = (0..7).flat_map(|i| [i as f32, 0.5]).collect();
    let lists: [ArrayRef; 3] = [
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows())),
        Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(rows())),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows(), 2)),
    ];
    for lists in lists {
        // Also where row groups begin within a batch.
        for group in [3, 100] {
            arrow(&path, &[("x", lists.clone())], group);
            assert_eq!(features(&import(&files, path.clone(), &["x"]).unwrap()), expected);
        }
    }

    let (items, again): (&[f64], &[i16]) = (&[1.0, 2.0, 3.0, 4.0], &[0, 1, 0, 1]);
    for (schema, level) in [
        ("optional group x (LIST) { repeated group list { optional double element; } }", 3),
        ("required group x (LIST) { repeated group bag { required double array_element; } }", 1),
        ("optional group x (LIST) { repeated double array; }", 2),
        ("required group x (LIST) { repeated double element; }", 1),
        ("repeated double x;", 1),
    ] {
        let levels = [level; 4];
        let leaves = [leaf::<DoubleType>(items, Some(&levels), Some(again))];
        raw(&path, schema, &leaves, None);
        let found = features(&import(&files, path.clone(), &["x"]).unwrap());
        assert_eq!(found, [1.0, 2.0, 3.0, 4.0], "{schema}");
    }
    // The first of two lists is there, but empty, or null.
    let schema = "optional group x (LIST) { repeated group list { optional double element; } }";
    for (level, said) in [
        (1, "row 1: column 'x' has a list of 2, the first has 0"),
        (0, "row 0: column 'x' is null"),
    ] {
        let levels = [level, 3, 3];
        let leaves = [leaf::<DoubleType>(&items[..2], Some(&levels), Some(&[0, 0, 1]))];
        raw(&path, schema, &leaves, None);
        let message = import(&files, path.clone(), &["x"]).unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
    }
    let words = [ByteArray::from("a"), ByteArray::from("b")];
    let leaves = [leaf::<ByteArrayType>(&words, Some(&[1, 1]), Some(&[0, 0]))];
    raw(&path, "repeated binary x (STRING);", &leaves, None);
    let message = import(&files, path, &["x"]).unwrap_err().to_string();
    assert!(message.contains("column 'x' holds lists of Utf8, numbers are needed"), "{message}");
}

#[test]
fn text_of_every_kind_is_a_category_and_an_id() {
    let files = Files::new();
    let path = files.path("e.parquet");
    let words = ["ann", "bob", "ann"];
    let friends = ["bob", "eve", "eve"];
    let check = |path: PathBuf| {
        let options = TableOptions::plain(path);
        let made = tables(&options, &files.fresh("out")).unwrap();
        assert_eq!(counts(&made.report)[..2], [3, 3]);
    };
    let kinds: [fn([&str; 3]) -> ArrayRef; 4] = [
        |words| Arc::new(StringArray::from(words.to_vec())),
        |words| Arc::new(LargeStringArray::from(words.to_vec())),
        |words| Arc::new(StringViewArray::from(words.to_vec())),
        |words| Arc::new(words.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    for kind in kinds {
        arrow(&path, &[("src", kind(words)), ("dst", kind(friends))], 2);
        check(path.clone());
    }
    let bytes = |words: [&str; 3]| words.map(ByteArray::from);
    let (sources, targets) = (bytes(words), bytes(friends));
    let leaves = || {
        [leaf::<ByteArrayType>(&sources, None, None), leaf::<ByteArrayType>(&targets, None, None)]
    };
    for kind in ["(UTF8)", "(STRING)", "(ENUM)", "(JSON)"] {
        let schema = format!("required binary src {kind}; required binary dst {kind};");
        raw(&path, &schema, &leaves(), None);
        check(path.clone());
    }
    // Bytes are text only if Arrow's schema says so.
    let schema = "required binary src; required binary dst;";
    let text = |name| Field::new(name, DataType::Utf8, false);
    raw(&path, schema, &leaves(), Some(&Schema::new(vec![text("src"), text("dst")])));
    check(path.clone());
    for hint in [None, Some(Schema::new(vec![text("other"), text("dst")]))] {
        raw(&path, schema, &leaves(), hint.as_ref());
        let options = TableOptions::plain(path.clone());
        let message = tables(&options, &files.fresh("out")).unwrap_err().to_string();
        assert!(message.contains("column 'src' holds Binary, text is needed"), "{message}");
        assert!(message.contains("hint: convert it"), "{message}");
    }
    let spoilt = [ByteArray::from("a"), ByteArray::from(vec![b'b', 0xff])];
    let leaves = [
        leaf::<ByteArrayType>(&spoilt, Some(&[1, 0, 1]), None),
        leaf::<ByteArrayType>(&targets, None, None),
    ];
    raw(&path, "optional binary src (UTF8); required binary dst (UTF8);", &leaves, None);
    let message = tables(&TableOptions::plain(path), &files.fresh("out")).unwrap_err().to_string();
    assert!(message.contains("row 2: column 'src' has text that is not UTF-8"), "{message}");
}

#[test]
fn other_types_are_refused_by_name() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let fields = vec![Arc::new(Field::new("a", DataType::Int64, true))];
    let group = StructArray::new(fields.into(), vec![numbers.clone()], None);
    let rows = [Some(vec![Some(1)]), Some(vec![Some(2)])];
    let inner = ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
    let item = Arc::new(Field::new("item", inner.data_type().clone(), true));
    let nested = FixedSizeListArray::new(item, 1, Arc::new(inner), None);
    let item = Arc::new(Field::new("item", group.data_type().clone(), true));
    let groups = FixedSizeListArray::new(item, 1, Arc::new(group.clone()), None);
    let others: [(&str, ArrayRef); 7] = [
        ("Binary", Arc::new(BinaryArray::from(vec![&b"a"[..], b"b"]))),
        ("Duration(ns)", Arc::new(DurationNanosecondArray::from(vec![1, 2]))),
        ("Time", Arc::new(Time32SecondArray::from(vec![1, 2]))),
        ("Time", Arc::new(Time64NanosecondArray::from(vec![1, 2]))),
        ("Struct", Arc::new(group)),
        ("lists of Struct", Arc::new(groups)),
        ("lists of List", Arc::new(nested)),
    ];
    for (name, array) in others {
        arrow(&path, &[("plain", numbers.clone()), ("odd", array)], 100);
        // Beside others, it is no obstacle.
        let dataset = import(&files, path.clone(), &["plain"]).unwrap();
        assert_eq!(features(&dataset), [1.0, 2.0]);
        let message = import(&files, path.clone(), &["plain", "odd"]).unwrap_err().to_string();
        assert!(message.contains(&format!("n.parquet: column 'odd' holds {name}, ")), "{message}");
        assert!(message.contains("hint: convert it to numbers"), "{message}");
    }
    let entries = "repeated group key_value { required int32 key; required int32 value; }";
    let [one, first]: [&[i16]; 2] = [&[1, 1], &[0, 0]];
    let leaves = || leaf::<Int32>(&[1, 2], Some(one), Some(first));
    let schema = format!("required group odd (MAP) {{ {entries} }}");
    raw(&path, &schema, &[leaves(), leaves()], None);
    let message = import(&files, path, &["odd"]).unwrap_err().to_string();
    assert!(message.contains("column 'odd' holds Map, text is needed"), "{message}");
}

#[test]
fn columns_of_nulls_are_missing_numbers_and_texts() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let columns: [(&str, ArrayRef); 2] = [
        ("x", Arc::new(NullArray::new(3))),
        ("y", Arc::new(Int64Array::from(vec![None, Some(4), None]))),
    ];
    arrow(&path, &columns, 2);
    let filled = |column: &str, transform| Feature {
        column: column.into(),
        transform,
        impute: (transform == Transform::None).then_some(Impute::Value(9.0)),
        indicator: false,
    };
    let mut table = NodeTable::new(DEFAULT_NODE_TYPE, path);
    table.features = vec![filled("x", Transform::None), filled("y", Transform::None)];
    let edges = EdgeTable::new(
        Triple::plain(),
        files.text(
            "edges.csv",
            "src,dst
0,1
",
        ),
    );
    let mut options = TableOptions { nodes: vec![table], edges: vec![edges], ..Default::default() };
    let dataset = tables(&options, &files.fresh("out")).unwrap().dataset;
    assert_eq!(features(&dataset), [9.0, 9.0, 9.0, 4.0, 9.0, 9.0]);
    options.nodes[0].features = vec!["y".into()];
    let message = tables(&options, &files.fresh("out")).unwrap_err().to_string();
    assert!(message.contains("row 0: column 'y': the feature is missing"), "{message}");
}

#[test]
fn batches_go_on_across_row_groups() {
    let files = Files::new();
    let path = files.path("e.parquet");
    let count = 100_000i64;
    let src: Int64Array = (0..count).map(|i| i * 7 % count).collect();
    let dst: Int64Array = (0..count).map(|i| Some(i * 11 % count)).collect();
    let names: DictionaryArray<Int32Type> =
        (0..count).map(|i| (i % 3 > 0).then_some(["new", "old"][i as usize % 2])).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("src", Arc::new(src)), ("dst", Arc::new(dst)), ("age", Arc::new(names))];
    for group in [7_001, 40_000, 1 << 20] {
        arrow(&path, &columns, group);
        let mut table = EdgeTable::new(Triple::plain(), path.clone());
        table.label = Some("age".into());
        let options = TableOptions { edges: vec![table], ..Default::default() };
        let dataset = tables(&options, &files.fresh("out")).unwrap().dataset;
        let mut edges = edges(&dataset);
        edges.sort_unstable();
        let mut expected: Vec<(u64, u64)> =
            (0..count as u64).map(|i| (i * 7 % count as u64, i * 11 % count as u64)).collect();
        expected.sort_unstable();
        assert!(edges == expected);
        let labels = dataset.edge_column(&Triple::plain(), "label").unwrap().unwrap();
        let labels = labels.values::<i32>().unwrap();
        assert_eq!(labels.iter().filter(|&&label| label < 0).count(), 33_334);
    }
}
