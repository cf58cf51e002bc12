//! SubDevices as the cable runs: a line stays a line, a junction opens branches.

/// Place of one SubDevice: position and port of the one before it.
pub(crate) type Upstream = Option<(u16, u8)>;

/// For each SubDevice, in order, the lines that draw the cable: the lines above it, and the line
/// before its name.
pub(crate) fn tree(upstream: &[Upstream]) -> Vec<Branch> {
    let mut branches: Vec<Branch> = Vec::with_capacity(upstream.len());
    for (position, &hangs_on) in upstream.iter().enumerate() {
        let branch = match hangs_on {
            Some((parent, port)) if usize::from(parent) < position => {
                let on_parent = |&&(other, _): &&(u16, u8)| other == parent;
                let siblings: Vec<u8> =
                    upstream.iter().flatten().filter(on_parent).map(|&(_, port)| port).collect();
                let indent = branches[usize::from(parent)].indent.clone();
                match siblings.len() {
                    0 | 1 => Branch { above: None, indent },
                    _ => open_branch(&indent, port, siblings.last() == Some(&port)),
                }
            }
            _ => Branch { above: None, indent: String::new() },
        };
        branches.push(branch);
    }
    branches
}

/// Line that draws a SubDevice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The line above it that names the port, where a junction's branch begins.
    pub(crate) above: Option<String>,
    /// Prefix of its line.
    pub(crate) indent: String,
}

fn open_branch(indent: &str, port: u8, last: bool) -> Branch {
    let (corner, along) = if last { ("└─", "   ") } else { ("├─", "│  ") };
    Branch { above: Some(format!("{indent}{corner} port {port}")), indent: format!("{indent}{along}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(upstream: &[Upstream]) -> String {
        let mut text = String::new();
        for (position, branch) in tree(upstream).iter().enumerate() {
            if let Some(above) = &branch.above {
                text += &format!("{above}\n");
            }
            text += &format!("{}{position}\n", branch.indent);
        }
        text
    }

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(drawn(&[None, Some((0, 1)), Some((1, 1))]), "0\n1\n2\n");
    }

    #[test]
    fn a_junction_opens_branches() {
        let upstream = [None, Some((0, 3)), Some((1, 1)), Some((0, 1)), Some((3, 3)), Some((3, 2))];
        assert_eq!(
            drawn(&upstream),
            "0\n├─ port 3\n│  1\n│  2\n└─ port 1\n   3\n   ├─ port 3\n   │  4\n   └─ port 2\n      5\n"
        );
    }

    #[test]
    fn impossible_links_do_not_stop_the_drawing() {
        assert_eq!(drawn(&[Some((5, 1)), Some((1, 1))]), "0\n1\n");
    }
}
