//! Reading rows from files: GALAMOST, VOTCA, LAMMPS, CSV and plain columns. The format is detected from the contents.

use crate::{FEWEST, Kind, Mistake, Rows, Unit};

/// Selects rows and columns of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Section of a LAMMPS file.
    pub entry: Option<&'a str>,
    /// Numbers, from 1, of the columns of x, U and optionally F; not for LAMMPS files.
    pub columns: Option<&'a [u32]>,
}

/// Reads the rows of a file.
///
/// # Errors
/// Returns an error with the first malformed line.
pub fn read(text: &str, choice: Choice<'_>) -> Result<Rows, Mistake> {
    let lines = || text.lines().zip(1u32..).map(|(l, n)| (n, without_comment(l))).filter(|(_, l)| !l.is_empty());
    if let Some(columns) = choice.columns
        && (!(2..=3).contains(&columns.len()) || columns.contains(&0))
    {
        return Err(Mistake::new(
            "`columns` takes two or three column numbers, from 1: those of r, U and optionally F",
        ));
    }
    let is_lammps = lines().any(|(_, l)| is_parameters(l));
    if choice.columns.is_some() && is_lammps {
        return Err(Mistake::new("the columns of a LAMMPS table are fixed; remove `columns`"));
    }
    if choice.entry.is_some() && !is_lammps {
        return Err(Mistake::new(
            "`entry` names a section of a LAMMPS table, but this file is not one; remove `entry`",
        ));
    }
    let list: Vec<(u32, &str)> = lines().collect();
    if let Some(k) = list.iter().position(|(_, l)| l.starts_with('<') && tag(l).is_some_and(|t| !t.starts_with('?'))) {
        return galamost(&list[k..], choice.columns);
    }
    if is_lammps {
        return lammps(&list, choice.entry);
    }
    if list.first().is_some_and(|(_, l)| l.contains(',')) {
        return csv(&list, choice.columns);
    }
    columns(&list, choice.columns)
}

/// Removes comments and surrounding blanks from a line.
fn without_comment(line: &str) -> &str {
    let line = line.trim().trim_start_matches('\u{feff}');
    if line.starts_with('@') { "" } else { line.split('#').next().unwrap_or("").trim() }
}

fn number(line: u32, word: &str) -> Result<f64, Mistake> {
    word.parse().map_err(|_| Mistake::at(line, format!("expected a number, found `{word}`")))
}

/// Appends one row of words; column numbers start at 1.
fn push(rows: &mut Rows, line: u32, words: &[&str], columns: &[u32]) -> Result<(), Mistake> {
    let value = |column: u32| match words.get(column as usize - 1) {
        Some(word) => number(line, word),
        None => Err(Mistake::at(line, format!("there is no column {column}: the line has {}", words.len()))),
    };
    rows.x.push(value(columns[0])?);
    rows.u.push(value(columns[1])?);
    if let Some(column) = columns.get(2) {
        let f = value(*column)?;
        rows.f.get_or_insert_default().push(f);
    }
    rows.lines.push(line);
    Ok(())
}

/// Reads columns of r and U. In VOTCA files, rows with the flag u (undefined) are skipped.
fn columns(list: &[(u32, &str)], chosen: Option<&[u32]>) -> Result<Rows, Mistake> {
    let mut rows = Rows::default();
    for (line, text) in list {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.last() {
            Some(&"u") if words.len() > 2 => continue,
            _ => push(&mut rows, *line, &words, chosen.unwrap_or(&[1, 2]))?,
        }
    }
    if chosen.is_none() && numbers_rows(list, &rows) {
        let message = "the first column numbers the rows; give the numbers of the columns of the variable, U and \
                       optionally F with `columns`";
        return Err(Mistake::at(list[0].0, message));
    }
    Ok(rows)
}

/// Returns whether the first column of a file is 1, 2, 3, … and the second one is the variable: it increases, and numbers follow.
fn numbers_rows(list: &[(u32, &str)], rows: &Rows) -> bool {
    let follows = |text: &str| text.split_whitespace().nth(2).is_some_and(|word| word.parse::<f64>().is_ok());
    rows.x.len() >= FEWEST
        && rows.x.iter().zip(1u32..).all(|(x, k)| *x == f64::from(k))
        && rows.u.windows(2).all(|u| u[1] > u[0])
        && list.iter().all(|(_, text)| follows(text))
}

/// Returns the name in `< Name >` or `</ Name >`, without blanks.
fn tag(line: &str) -> Option<String> {
    let inner = line.strip_prefix('<')?.strip_suffix('>')?;
    Some(inner.chars().filter(|c| !c.is_whitespace()).collect())
}

/// Reads the rows of a `<PairPotential>`, `<BondPotential>`, `<AnglePotential>` or `<DihedralPotential>` element.
fn galamost(list: &[(u32, &str)], chosen: Option<&[u32]>) -> Result<Rows, Mistake> {
    let mut rows = Rows::default();
    let mut open: Option<(u32, String)> = None;
    for (line, text) in list {
        let Some(name) = tag(text) else {
            if open.is_none() {
                return Err(Mistake::at(*line, "rows must be inside an element such as <PairPotential>"));
            }
            push(&mut rows, *line, &text.split_whitespace().collect::<Vec<_>>(), chosen.unwrap_or(&[1, 2]))?;
            continue;
        };
        if let Some((_, opened)) = &open {
            if name.strip_prefix('/').is_some_and(|n| n.eq_ignore_ascii_case(opened)) {
                return Ok(rows);
            }
            return Err(Mistake::at(*line, format!("expected </{opened}>, found <{name}>")));
        }
        let kind = Kind::ALL.into_iter().find(|k| name.eq_ignore_ascii_case(&format!("{}Potential", k.name())));
        if name.to_ascii_lowercase().ends_with("forcepoints") {
            return Err(Mistake::at(
                *line,
                "coefficients (ForcePoints) are not supported; give rows of r and U of the potential",
            ));
        }
        let known = "PairPotential, BondPotential, AnglePotential and DihedralPotential";
        rows.kind =
            Some(kind.ok_or_else(|| Mistake::at(*line, format!("<{name}> is not a table; the tables are {known}")))?);
        // angles in this format are in radians
        rows.unit = rows.kind.filter(|k| k.is_angle()).map(|_| Unit::Radians);
        open = Some((*line, name));
    }
    let (line, name) = open.unwrap_or_default();
    Err(Mistake::at(line, format!("<{name}> is not closed by </{name}>")))
}

/// Returns whether a line holds the parameters of a LAMMPS section: `N 500 R 0.9 3.0`.
fn is_parameters(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("N") && words.next().is_some_and(|n| n.parse::<u32>().is_ok())
}

/// Returns the kinds of interaction that a section of a LAMMPS table may have, judged by its parameters and by the last comment above
/// it that names a kind, such as `# bond table`. Returns `None` if the text is not a LAMMPS table with this section.
pub fn lammps_kinds(text: &str, entry: Option<&str>) -> Option<&'static [Kind]> {
    let (mut commented, mut keyword) = (None, "");
    for line in text.lines() {
        commented = line.split_once('#').and_then(|(_, comment)| kind_in_comment(comment)).or(commented);
        let line = without_comment(line);
        if is_parameters(line) && entry.is_none_or(|e| e == keyword) {
            let has = |names: &[&str]| line.split_whitespace().any(|word| names.contains(&word));
            let kinds: &'static [Kind] = match commented {
                // parameters of `pair_style table` and of `dihedral_style table` only
                _ if has(&["R", "RSQ", "FPRIME", "BITMAP"]) => &[Kind::Pair],
                _ if has(&["DEGREES", "RADIANS"]) => &[Kind::Dihedral],
                Some(Kind::Bond) => &[Kind::Bond],
                Some(Kind::Angle) => &[Kind::Angle],
                _ if has(&["EQ"]) => &[Kind::Bond, Kind::Angle],
                Some(Kind::Pair) => &[Kind::Pair],
                Some(Kind::Dihedral) => &[Kind::Dihedral],
                None => &Kind::ALL,
            };
            return Some(kinds);
        }
        keyword = line.split_whitespace().next().unwrap_or(keyword);
    }
    None
}

/// Returns a warning if a section of a LAMMPS table states other kinds of interaction than the one that it is read as.
pub fn contradicted_kind(text: &str, entry: Option<&str>, kind: Kind) -> Option<String> {
    let stated = lammps_kinds(text, entry).filter(|kinds| !kinds.contains(&kind))?;
    let names: Vec<String> = stated.iter().map(|k| format!("{}s", k.name())).collect();
    Some(format!(
        "its comment or its parameters state that it is a table of {}, but it is read as one of {}s",
        names.join(" or "),
        kind.name()
    ))
}

/// Returns the kind of interaction that a comment names, if it names one only.
fn kind_in_comment(comment: &str) -> Option<Kind> {
    let comment = comment.to_ascii_lowercase();
    let names = |name: &str| comment.split(|c: char| !c.is_alphabetic()).any(|word| word.trim_end_matches('s') == name);
    // a dihedral is an angle, too
    if names("dihedral") || names("improper") {
        return Some(Kind::Dihedral);
    }
    let mut named = [Kind::Pair, Kind::Bond, Kind::Angle].into_iter().filter(|k| names(k.name()));
    named.next().filter(|_| named.next().is_none())
}

/// Reads a section of a LAMMPS table: a keyword, its parameters, rows of index, x, U, F.
fn lammps(list: &[(u32, &str)], entry: Option<&str>) -> Result<Rows, Mistake> {
    let headers: Vec<usize> = (0..list.len().saturating_sub(1)).filter(|k| is_parameters(list[k + 1].1)).collect();
    let at = lammps_section(list, &headers, entry)?;
    let (line, text) = list[at + 1];
    let LammpsParameters { n, range, squares, force, unit } = lammps_parameters(line, text)?;
    let mut rows = Rows { unit, ..Rows::default() };
    let end = headers.iter().find(|k| **k > at).copied().unwrap_or(list.len());
    for (line, text) in &list[at + 2..end] {
        let words: Vec<&str> = text.split_whitespace().collect();
        push(&mut rows, *line, &words, if force { &[2, 3, 4] } else { &[2, 3] })?;
    }
    if rows.x.len() != n {
        return Err(Mistake::at(line, format!("N is {n}, but {} rows follow", rows.x.len())));
    }
    if let Some(range) = range.filter(|_| n > 1) {
        rows.x = lammps_distances(line, &rows, range, squares)?;
    }
    Ok(rows)
}

/// Returns r of the rows of a section with R or RSQ, which LAMMPS computes from the range. The column of r is 0 throughout or
/// the same up to rounding.
fn lammps_distances(line: u32, rows: &Rows, [low, high]: [f64; 2], squares: bool) -> Result<Vec<f64>, Mistake> {
    let n = rows.x.len();
    let at = |k: usize, low: f64, high: f64| low + (high - low) * k as f64 / (n - 1) as f64;
    let r = |k| if squares { at(k, low * low, high * high).sqrt() } else { at(k, low, high) };
    let computed: Vec<f64> = (0..n).map(r).collect();
    if rows.x.iter().all(|x| *x == 0.0) {
        return Ok(computed);
    }
    let far = |k: usize| (rows.x[k] - computed[k]).abs() > 1e-3 * (high - low).abs();
    if far(0) || far(n - 1) {
        let (first, last) = (rows.x[0], rows.x[n - 1]);
        return Err(Mistake::at(line, format!("the range is {low} … {high}, but the rows are {first} … {last}")));
    }
    if let Some(k) = (0..n).find(|k| far(*k)) {
        let (keyword, x, r) = (if squares { "RSQ" } else { "R" }, rows.x[k], computed[k]);
        let message =
            format!("r = {x}, but {keyword} {low} {high} means {r}; remove {keyword} or correct the column of r");
        return Err(Mistake::at(rows.lines[k], message));
    }
    Ok(computed)
}

/// Returns the index of the keyword line of a section in `list`; `headers` are those of all sections.
fn lammps_section(list: &[(u32, &str)], headers: &[usize], entry: Option<&str>) -> Result<usize, Mistake> {
    let name = |k: &usize| list[*k].1.split_whitespace().next().unwrap_or("");
    let names = || headers.iter().map(name).collect::<Vec<_>>().join(", ");
    let at = match entry {
        Some(e) => headers.iter().find(|k| name(k) == e).copied(),
        None if headers.len() > 1 => {
            return Err(Mistake::new(format!(
                "the file has {} sections, {}; select one with `entry`",
                headers.len(),
                names()
            )));
        }
        None => headers.first().copied(),
    };
    at.ok_or_else(|| match entry {
        Some(entry) => Mistake::new(format!("there is no section {entry}; the sections are {}", names())),
        None => Mistake::new("the file has no section with a keyword above its parameters"),
    })
}

/// The parameters of a LAMMPS section.
struct LammpsParameters {
    /// Number of rows.
    n: usize,
    /// First and last x.
    range: Option<[f64; 2]>,
    /// Whether the squares of x have equal distances.
    squares: bool,
    /// Whether the rows have forces.
    force: bool,
    unit: Option<Unit>,
}

/// Parses the line of parameters of a LAMMPS section.
fn lammps_parameters(line: u32, text: &str) -> Result<LammpsParameters, Mistake> {
    let mut out = LammpsParameters { n: 0, range: None, squares: false, force: true, unit: None };
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or_else(|| Mistake::at(line, format!("{word} needs a number")));
        match word {
            "N" => {
                let word = next()?;
                out.n = word
                    .parse::<usize>()
                    .map_err(|_| Mistake::at(line, format!("expected a whole number, found `{word}`")))?;
            }
            "R" | "RSQ" => {
                out.range = Some([number(line, next()?)?, number(line, next()?)?]);
                out.squares = word == "RSQ";
            }
            // slopes of the force at the ends (FPRIME in pair tables) and the position of the minimum follow from the rows
            "FP" | "FPRIME" => drop([number(line, next()?)?, number(line, next()?)?]),
            "EQ" => drop(number(line, next()?)?),
            "NOF" => out.force = false,
            "DEGREES" => out.unit = Some(Unit::Degrees),
            "RADIANS" => out.unit = Some(Unit::Radians),
            "CHECKU" | "CHECKF" => drop(next()?),
            "BITMAP" => {
                return Err(Mistake::at(line, "BITMAP grids are not supported; write the table with R or RSQ"));
            }
            _ => return Err(Mistake::at(line, format!("unknown parameter `{word}`"))),
        }
    }
    Ok(out)
}

/// Returns the column, from 1, of the variable that a header names: `r`, `theta`, `phi` or `angle`, with or without a unit
/// (`theta_deg`, `phi_rad`).
pub fn variable_column(header: &[String]) -> Option<u32> {
    let is_variable = |w: &String| {
        let name = w.to_ascii_lowercase();
        let angle = name.strip_suffix("_deg").or_else(|| name.strip_suffix("_rad")).unwrap_or(&name);
        name == "r" || ["theta", "phi", "angle"].contains(&angle)
    };
    header.iter().position(is_variable).map(|k| k as u32 + 1)
}

/// Returns the columns of the variable, U and optionally F in a table with a header.
fn named_columns(line: u32, header: &[String]) -> Result<Vec<u32>, Mistake> {
    let is = |w: &str, names: &[&str]| names.iter().any(|n| w.eq_ignore_ascii_case(n));
    let column = |names: &[&str]| header.iter().position(|w| is(w, names)).map(|k| k as u32 + 1);
    let (x, u, f) = (variable_column(header), column(&["u", "v", "energy", "potential"]), column(&["f", "force"]));
    // without its name, the variable is in column 1, unless that is the numbering of the rows in front of other columns
    let numbering = header[0].is_empty() && u.is_some_and(|u| u > 2);
    let missing = match (x, u) {
        (None, Some(_)) if u == Some(1) || f == Some(1) || numbering => "the variable (r, theta_deg, phi_deg, …)",
        // such as a table of `Rdf`
        (Some(_), None) => "U",
        _ => {
            let mut used = vec![x.unwrap_or(1), u.unwrap_or(2)];
            used.extend(f);
            return Ok(used);
        }
    };
    let names = header.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    let message = format!(
        "no column has the name of {missing}; the columns are {names}; rename one, or give the numbers of the columns \
         of the variable, U and optionally F with `columns`"
    );
    Err(Mistake::at(line, message))
}

/// Reads comma-separated numbers. The first line may name the columns: r, theta_deg, phi_rad, …, U, F.
fn csv(list: &[(u32, &str)], chosen: Option<&[u32]>) -> Result<Rows, Mistake> {
    let split = |text: &str| text.split(',').map(|w| w.trim().trim_matches('"').to_string()).collect::<Vec<_>>();
    let header = split(list[0].1);
    let named = header.iter().all(|w| w.parse::<f64>().is_err());
    let mut rows = Rows::default();
    let mut used = chosen.unwrap_or(&[1, 2]).to_vec();
    if named {
        if chosen.is_none() {
            if header[0] == "step" {
                return Err(Mistake::at(
                    list[0].0,
                    "the first column is `step`: this is a table of an analyzer; a potential begins with r",
                ));
            }
            used = named_columns(list[0].0, &header)?;
        }
        let x = header.get(used[0] as usize - 1).map_or("", String::as_str);
        rows.is_distance = x.eq_ignore_ascii_case("r");
        rows.unit = match x.rsplit_once('_').map(|(_, unit)| unit) {
            Some("deg") => Some(Unit::Degrees),
            Some("rad") => Some(Unit::Radians),
            _ => None,
        };
    }
    for (line, text) in &list[usize::from(named)..] {
        let words = split(text);
        push(&mut rows, *line, &words.iter().map(String::as_str).collect::<Vec<_>>(), &used)?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_lammps_sections_follow_from_comments_and_parameters() {
        let cases: [(&str, &[Kind]); 10] = [
            ("# pair table\n\nA\nN 4\n", &[Kind::Pair]),
            ("# bond table\n\nA\nN 4\n", &[Kind::Bond]),
            ("# Angle potential for harmonic\n\nA\nN 4 EQ 90\n", &[Kind::Angle]),
            ("# angles of the dihedral\n\nA\nN 4\n", &[Kind::Dihedral]),
            ("A\nN 4 NOF RADIANS\n", &[Kind::Dihedral]),
            ("A\nN 4 FP 0 0 EQ 1\n", &[Kind::Bond, Kind::Angle]),
            ("# pair table\nA\nN 4 EQ 1\n", &[Kind::Bond, Kind::Angle]),
            ("# lengths of bonds\nA\nN 4 RSQ 1 2\n", &[Kind::Pair]),
            ("# non-bonded\nA\nN 4\n", &Kind::ALL),
            ("# pairs and bonds\nA\nN 4\n", &Kind::ALL),
        ];
        for (text, expected) in cases {
            assert_eq!(lammps_kinds(text, None), Some(expected), "{text}");
        }
        let two = "# bond\nA\nN 1\n\n1 1 2 3\n# angle\nB\nN 1\n\n1 1 2 3\n";
        assert_eq!(
            [Some("A"), Some("B"), Some("C")].map(|e| lammps_kinds(two, e)),
            [Some(&[Kind::Bond][..]), Some(&[Kind::Angle][..]), None]
        );
        assert_eq!(lammps_kinds("# bond table\n1 2\n2 3\n", None), None);
        for (text, kind, stated) in [
            ("# angle table\nA\nN 4\n", Kind::Bond, Some("a table of angles, but it is read as one of bonds")),
            ("A\nN 4 EQ 1\n", Kind::Pair, Some("a table of bonds or angles, but it is read as one of pairs")),
            ("A\nN 4 EQ 1\n", Kind::Angle, None),
            ("A\nN 4\n", Kind::Bond, None),
            ("r,U\n1,2\n", Kind::Bond, None),
        ] {
            let found = contradicted_kind(text, None, kind).unwrap_or_default();
            assert!(stated.map_or(found.is_empty(), |stated| found.contains(stated)), "{text}: {found}");
        }
    }

    #[test]
    fn a_column_that_numbers_the_rows_is_not_the_variable() {
        let rows = |text: &str, columns: Option<&[u32]>| read(text, Choice { columns, ..Choice::default() });
        let numbered = "1 0.8 4 1\n2 1.2 2 1\n3 1.6 1 1\n4 2.0 0 1\n";
        let e = rows(numbered, None).unwrap_err();
        assert!(e.message.starts_with("the first column numbers the rows") && e.line == Some(1), "{e:?}");
        assert_eq!(rows(numbered, Some(&[2, 3])).unwrap().x, [0.8, 1.2, 1.6, 2.0]);
        // two columns, the flags of VOTCA, and energies that do not increase
        for text in ["1 1\n2 2\n3 3\n4 4\n", "1 1 i\n2 2 i\n3 3 i\n4 4 o\n", "1 4 2\n2 2 2\n3 1 1\n4 0 0\n"] {
            assert_eq!(rows(text, None).unwrap().x, [1.0, 2.0, 3.0, 4.0], "{text}");
        }
    }

    #[test]
    fn columns_of_a_header_are_found_by_name() {
        let (x, u) = (vec![1.0, 1.5], vec![7.0, 5.0]);
        let cases = [
            ("r,U\n1,7\n1.5,5\n", None, None),
            (",r,U\n0,1,7\n1,1.5,5\n", None, None),
            ("U,r\n7,1\n5,1.5\n", None, None),
            ("\"F\",\"energy\",\"R\"\n3,7,1\n4,5,1.5\n", Some(vec![3.0, 4.0]), None),
            (",theta_deg,U\n0,1,7\n1,1.5,5\n", None, Some(Unit::Degrees)),
            ("U,F,phi_rad\n7,3,1\n5,4,1.5\n", Some(vec![3.0, 4.0]), Some(Unit::Radians)),
            // the index of a pandas series, another name of the variable, no names that are known
            (",U\n1,7\n1.5,5\n", None, None),
            ("distance,U\n1,7\n1.5,5\n", None, None),
            ("a,b\n1,7\n1.5,5\n", None, None),
        ];
        for (text, f, unit) in cases {
            let rows = read(text, Choice::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((rows.x, rows.u, rows.f, rows.unit), (x.clone(), u.clone(), f, unit), "{text}");
        }
        for (text, missing) in [
            ("U,distance\n7,1\n5,1.5\n", "the variable (r, theta_deg, phi_deg, …); the columns are `U`, `distance`;"),
            (",s,U\n0,1,7\n1,1.5,5\n", "the variable (r, theta_deg, phi_deg, …); the columns are ``, `s`, `U`;"),
            (",r,A-A\n0,1,7\n1,1.5,5\n", "U; the columns are ``, `r`, `A-A`;"),
            ("r,F\n1,7\n1.5,5\n", "U; the columns are `r`, `F`;"),
            // a table of `Rdf`
            ("r,A-A\n1,7\n1.5,5\n", "U; the columns are `r`, `A-A`;"),
        ] {
            let e = read(text, Choice::default()).unwrap_err();
            assert!(e.message.contains(&format!("no column has the name of {missing}")) && e.line == Some(1), "{e:?}");
        }
        // numbers of columns precede names
        let choice = Choice { columns: Some(&[1, 2]), ..Choice::default() };
        assert_eq!(read("U,r\n1,7\n1.5,5\n", choice).unwrap().u, u);
    }
}
