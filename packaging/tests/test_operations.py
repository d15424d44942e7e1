"""What operators get: manifests for Kubernetes, alerts, a dashboard and meters (OPS-01 to OPS-04)."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.request

from support import PACKAGING, needs, run, run_hub

DEPLOY = PACKAGING.parent / "deploy"


class Operations(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    @needs("kubectl", "kubernetes-validate")
    def test_manifests_fit_the_schemas_of_kubernetes(self) -> None:
        for name in ("base", "cluster"):
            rendered = self.folder / f"{name}.yaml"
            rendered.write_text(run("kubectl", "kustomize", DEPLOY / "kubernetes" / name).stdout)
            run("kubernetes-validate", "--strict", rendered)
            # A planted mistake is found, so the check can fail.
            wrong = self.folder / f"{name}-wrong.yaml"
            wrong.write_text(rendered.read_text().replace("readinessProbe", "readynessProbe"))
            self.assertNotEqual(run("kubernetes-validate", "--strict", wrong, check=False).returncode, 0)

    @needs("kubectl")
    def test_monitoring_is_a_component_of_an_overlay(self) -> None:
        overlay = self.folder / "overlay"
        overlay.mkdir()
        base = os.path.relpath(DEPLOY / "kubernetes/base", overlay.resolve())
        monitoring = os.path.relpath(DEPLOY / "kubernetes/monitoring", overlay.resolve())
        (overlay / "kustomization.yaml").write_text(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
            f"resources: [{base}]\ncomponents: [{monitoring}]\n"
        )
        rendered = run("kubectl", "kustomize", "--load-restrictor", "LoadRestrictionsNone", overlay).stdout
        self.assertIn("kind: ServiceMonitor", rendered)

    @needs("promtool")
    def test_each_alert_fires_on_its_fault_only(self) -> None:
        run("promtool", "check", "rules", DEPLOY / "alerts.yml")
        run("promtool", "test", "rules", DEPLOY / "alerts_test.yml")
        alerts = [line.split()[-1] for line in (DEPLOY / "alerts.yml").read_text().splitlines() if "- alert:" in line]
        tested = (DEPLOY / "alerts_test.yml").read_text()
        for alert in alerts:
            self.assertEqual(tested.count(alert), 2, f"{alert} is tested firing and silent")

    @needs("promtool")
    def test_every_expression_of_the_dashboard_is_valid(self) -> None:
        dashboard = json.loads((DEPLOY / "grafana.json").read_text())
        self.assertLessEqual(len(dashboard["panels"]), 16)
        rules = [
            {"record": f"panel:{panel['id']}:{target['refId']}", "expr": target["expr"]}
            for panel in dashboard["panels"]
            for target in panel["targets"]
        ]
        path = self.folder / "rules.yml"
        path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
        run("promtool", "check", "rules", path)

    @needs("promtool")
    def test_meters_of_a_used_hub_are_well_formed(self) -> None:
        binary = pathlib.Path(os.environ["CHORUS_BINARY"])
        environment = os.environ | {"CHORUS_HOME": str(self.folder / "home")}
        with run_hub(binary, self.folder / "data") as hub:
            run(binary, "register", "alice", "--hub", hub, "--culture", "en", env=environment)
            run(binary, "send", "alice", "hello", env=environment)
            text = urllib.request.urlopen(f"{hub}/metrics").read()
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
