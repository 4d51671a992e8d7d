//! What mutations begin with: examples of every target.

use super::{folder, small_run};
use std::io::Write as _;
use std::path::PathBuf;

/// Bytes to begin with: examples of every target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let repository = crate::repository();
    let read = |folder: PathBuf, ending: &str| -> Vec<Vec<u8>> {
        let list = std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
        let mut paths: Vec<PathBuf> = list.filter(|p| p.is_file() && p.to_string_lossy().ends_with(ending)).collect();
        paths.sort();
        paths.into_iter().filter_map(|p| std::fs::read(p).ok()).filter(|b| b.len() < 15_000).collect()
    };
    let mut all = read(repository.join("tests/fuzz/corpus").join(target), "");
    match target {
        "pipeline" | "generators" => all.extend(read(repository.join("examples"), ".ron")),
        "galamost_xml" => all.extend(read(repository.join("examples"), ".xml")),
        "packed" => {
            let plain =
                std::fs::read(repository.join("tests/fuzz/corpus/galamost_xml/all-arrays.xml")).expect("a file");
            let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
            gz.write_all(&plain).expect("packed");
            all.push(gz.finish().expect("packed"));
            let mut xz = vec![];
            lzma_rs::xz_compress(&mut plain.as_slice(), &mut xz).expect("packed");
            all.push(xz);
        }
        "lammps_data" => all.push(made("data", "analyzers=[LammpsData(every: 8, file: \"made.data\")]", "made.data")),
        "lammps_dump" => all.push(made("dump", "analyzers=[LammpsDump(every: 4, file: \"made.dump\")]", "made.dump")),
        "extended_xyz" => all.push(made("xyz", "analyzers=[ExtendedXyz(every: 4, file: \"made.xyz\")]", "made.xyz")),
        "mst" => all.push(made("mst", "analyzers=[Mst(every: 4, file: \"made.mst\")]", "made.mst")),
        "pdb" => all.push(made("pdb", "analyzers=[Pdb(every: 4, file: \"made.pdb\")]", "made.pdb")),
        "gro" => all.push(made("gro", "analyzers=[Gro(every: 4, file: \"made.gro\")]", "made.gro")),
        "dcd" => all.push(made("dcd", "analyzers=[Dcd(every: 4, file: \"made.dcd\")]", "made.dcd")),
        "xtc" => all.push(made("xtc", "analyzers=[Xtc(every: 4, file: \"made.xtc\")]", "made.xtc")),
        "trr" => all.push(made("trr", "analyzers=[Trr(every: 4, file: \"made.trr\", forces: true)]", "made.trr")),
        "gsd" => all.push(made("gsd", "analyzers=[Gsd(every: 4, file: \"made.gsd\")]", "made.gsd")),
        "parquet" => {
            let set =
                "analyzers=[Thermo(every: 1, file: \"t.parquet\"), Rdf(every: 4, file: \"rdf.parquet\", r_max: 1.0)]";
            all.push(made("parquet", set, "t.parquet/part-000000.parquet"));
            all.push(made("parquet", set, "rdf.parquet"));
        }
        "checkpoint" => {
            let mut bytes = made("checkpoint", "checkpoint=(every: 7, keep: 1)", "p.checkpoint");
            bytes.truncate(bytes.len() - 32);
            all.push(bytes);
        }
        _ => {}
    }
    all
}

/// A file written by a short run. Its content depends on the build of the plugins, so it is created on demand.
fn made(name: &str, set: &str, file: &str) -> Vec<u8> {
    let folder = folder().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("p.ron"), small_run()).expect("written");
    let out = crate::galamost(&folder, &["--pipeline", "p.ron", "--quiet", "--steps", "8", "--set", set]);
    assert!(out.status.success(), "{}", crate::words(&out));
    std::fs::read(folder.join(file)).expect("a file")
}
