//! A project's own package called `torch`.

mod support;

use support::Project;

/// Whatever it has, it is no tensor.
#[test]
fn a_package_of_ones_own_called_torch_is_not_pytorch() {
    let program = "import torch\nfrom torch import ones\nfrom torch.nn import Linear\n\n\
        a = torch.zeros(3, device=\"cuda\")\nb = ones(3, device=\"cuda\")\nc = Linear(1, 1, device=\"cuda\")\n\
        print(torch.zeros(3, device=\"cuda:1\") + torch.ones(3))\n";
    let found = |files: &[(&str, &str)]| {
        let project = Project::new(files);
        project.write("pyproject.toml", "");
        project.write("train.py", program);
        project.run("check --output-format concise train.py").stdout
    };
    let all = found(&[]);
    assert!(all.contains("SD101") && all.contains("SD201"), "{all}");
    let own = "def zeros(n, device):\n    return 0\n\n\ndef ones(n, device=None):\n    return 1\n";
    assert_eq!(found(&[("torch/__init__.py", own)]), "");
    assert_eq!(found(&[("torch/__init__.py", "from .arrays import *\n")]), "");
    assert_eq!(found(&[("torch.py", own)]), "");
    assert_eq!(found(&[("torch/__init__.py", own), ("torch/csrc/x.cpp", "")]), all, "PyTorch's repository");
    assert_eq!(found(&[("torch/__init__.py", "# examples\n")]), all);
    assert_eq!(found(&[("torch/mnist.py", "")]), all, "a folder alone is found after what is installed");
}
