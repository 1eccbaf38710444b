//! What names mean: `steps.x.value`, `inputs.x`, `assets.x`, and `has()` of them.

use cel::common::ast::{Expr as Cel, IdedExpr, SelectExpr};

use super::check::Fault;
use super::lower::{CAN, Checker, Lowered, index_call, is_ident, text_literal};
use super::{Expr, Flag, Type, Which};
use crate::problem::{did_you_mean, one_of};

const FLAGS: [&str; 4] = ["value", "out_of_range", "skipped", "recorded"];

impl Checker<'_> {
    /// A name that stands alone.
    pub(super) fn name(&self, id: u64, name: &str) -> Lowered {
        if self.each.as_deref() == Some(name) {
            return Ok((Expr::StepId, Type::Text));
        }
        Err(match name {
            "steps" => self.fault(id, "steps alone has no value", "write steps.<id>.value"),
            "inputs" => self.fault(id, "inputs alone has no value", "write inputs.<name>"),
            "assets" => self.fault(id, "assets alone has no value", "write assets.<role>"),
            _ => self.fault(id, format!("\"{name}\" is not known"), self.hint_for_name(name)),
        })
    }

    fn hint_for_name(&self, name: &str) -> String {
        if self.scope.steps.iter().any(|s| s.id == name) {
            return format!("write steps.{name}.value");
        }
        if self.scope.inputs.contains_key(name) {
            return format!("write inputs.{name}");
        }
        did_you_mean(name, ["steps", "inputs", "assets"])
            .unwrap_or_else(|| "names are steps, inputs and assets".to_owned())
    }

    /// `inputs.x`, `assets.x`, `steps.x.y`, and `has()` of them.
    pub(super) fn select(&mut self, id: u64, select: &SelectExpr) -> Lowered {
        let operand = &*select.operand;
        if let Cel::Ident(root) = &operand.expr {
            match root.as_str() {
                "inputs" => return self.input(id, &select.field, select.test),
                "assets" => return self.asset(id, &select.field, select.test),
                "steps" => {
                    let step = self.step(id, &select.field)?;
                    let name = &self.scope.steps[step].id;
                    let hint =
                        format!("write steps.{name}.value, .out_of_range, .skipped or .recorded");
                    return Err(self.fault(id, "a step alone has no value", hint));
                }
                _ => return self.name(operand.id, root),
            }
        }
        match self.which_step(operand)? {
            Some(which) => self.of_step(id, which, &select.field, select.test),
            None => Err(self.no_such_name(id, operand, &select.field)),
        }
    }

    /// What to say about a chain of names that means nothing: the root is most likely misspelt.
    fn no_such_name(&self, id: u64, operand: &IdedExpr, field: &str) -> Fault {
        let mut node = operand;
        while let Cel::Select(select) = &node.expr {
            node = &select.operand;
        }
        if let Cel::Ident(root) = &node.expr
            && !matches!(root.as_str(), "steps" | "inputs" | "assets")
        {
            let message = format!("\"{root}\" is not known");
            return self.fault(node.id, message, self.hint_for_name(root));
        }
        self.fault(id, format!("there is nothing called \"{field}\" here"), CAN)
    }

    /// The step that `steps.x` or `steps["x"]` or `steps[id]` means.
    fn which_step(&mut self, node: &IdedExpr) -> Result<Option<Which>, Fault> {
        if let Cel::Select(select) = &node.expr {
            if is_ident(&select.operand, "steps") && !select.test {
                return self.step(node.id, &select.field).map(|i| Some(Which::Fixed(i)));
            }
        } else if let Some((container, index)) = index_call(&node.expr) {
            if !is_ident(container, "steps") {
                return Ok(None);
            }
            if let Some(key) = text_literal(index) {
                return self.step(index.id, key).map(|i| Some(Which::Fixed(i)));
            }
            if let Cel::Ident(name) = &index.expr
                && self.each.as_deref() == Some(name.as_str())
            {
                return Ok(Some(Which::Each));
            }
            return Err(self.fault(
                index.id,
                "steps[…] takes an id in quotes or the variable of exists",
                "write steps[\"id\"] or steps.exists(id, steps[id].out_of_range)",
            ));
        }
        Ok(None)
    }

    /// The index of a step that may be referred to from here.
    fn step(&mut self, id: u64, name: &str) -> Result<usize, Fault> {
        let found = self.scope.steps.iter().position(|s| s.id == name);
        let Some(index) = found else {
            let known = &self.scope.steps[..self.scope.before.min(self.scope.steps.len())];
            let hint = did_you_mean(name, known.iter().map(|s| s.id.as_str()));
            let hint = hint.unwrap_or_else(|| match known.last() {
                Some(last) => format!("a step before this one is \"{}\"", last.id),
                None => "no step comes before this one".to_owned(),
            });
            return Err(self.fault(id, format!("there is no step \"{name}\""), hint));
        };
        if index >= self.scope.before {
            let message = if index == self.scope.before {
                format!("step \"{name}\" refers to itself")
            } else {
                format!("step \"{name}\" comes later")
            };
            return Err(self.fault(id, message, "refer to steps that stand before this one"));
        }
        self.uses.insert(index);
        Ok(index)
    }

    fn of_step(&self, id: u64, which: Which, field: &str, has: bool) -> Lowered {
        let flag = match field {
            "out_of_range" => Flag::OutOfRange,
            "skipped" => Flag::Skipped,
            "recorded" => Flag::Recorded,
            "value" => return self.value_of_step(id, which, has),
            _ => {
                let message = format!("steps have no \".{field}\"");
                return Err(self.fault(id, message, one_of(field, &FLAGS)));
            }
        };
        if has {
            let hint = format!(".{field} is always there: leave has() away");
            return Err(self.fault(id, "has() asks for values that may be absent", hint));
        }
        Ok((Expr::StepFlag(which, flag), Type::Bool))
    }

    fn value_of_step(&self, id: u64, which: Which, has: bool) -> Lowered {
        let index = match which {
            Which::Fixed(index) => index,
            Which::Each if has => {
                return Ok((Expr::StepFlag(which, Flag::Recorded), Type::Bool));
            }
            Which::Each => {
                return Err(self.fault(
                    id,
                    "values of different steps have different types",
                    "name the step, or ask for .out_of_range, .skipped or .recorded",
                ));
            }
        };
        if has {
            return Ok((Expr::HasStepValue(index), Type::Bool));
        }
        let step = &self.scope.steps[index];
        if step.sensitive {
            return Err(self.fault(
                id,
                format!("step \"{}\" is sensitive: its value is never looked at", step.id),
                "ask for .recorded or .skipped, or remove sensitive",
            ));
        }
        Ok((Expr::StepValue(index), step.value))
    }

    /// `inputs.x` or `has(inputs.x)`.
    pub(super) fn input(&self, id: u64, name: &str, has: bool) -> Lowered {
        let Some(input) = self.scope.inputs.get(name) else {
            let known: Vec<&str> = self.scope.inputs.keys().map(String::as_str).collect();
            let hint = if known.is_empty() {
                "this procedure has no inputs; describe them under inputs".to_owned()
            } else {
                one_of(name, &known)
            };
            return Err(self.fault(id, format!("there is no input \"{name}\""), hint));
        };
        if input.sensitive {
            return Err(self.fault(
                id,
                format!("input \"{name}\" is sensitive: its value is never looked at"),
                "remove sensitive, or the reference",
            ));
        }
        if has {
            return Ok((Expr::HasInput(name.to_owned()), Type::Bool));
        }
        match input.value {
            Some(found) => Ok((Expr::Input(name.to_owned()), found)),
            None => Err(self.fault(
                id,
                format!("input \"{name}\" has no type that expressions know"),
                "give it type: number, integer, string or boolean",
            )),
        }
    }

    /// `assets.x`.
    pub(super) fn asset(&self, id: u64, role: &str, has: bool) -> Lowered {
        if !self.scope.roles.iter().any(|r| r == role) {
            let known: Vec<&str> = self.scope.roles.iter().map(String::as_str).collect();
            let hint = if known.is_empty() {
                "this procedure has no assets".to_owned()
            } else {
                one_of(role, &known)
            };
            return Err(self.fault(id, format!("there is no asset \"{role}\""), hint));
        }
        if has {
            let hint = "every asset is always there: leave has() away";
            return Err(self.fault(id, "has() asks for values that may be absent", hint));
        }
        Ok((Expr::Asset(role.to_owned()), Type::Text))
    }
}
